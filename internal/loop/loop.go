// Package loop is the controller kit: it contains what the reconcile loops of all components share.
//
//   - queues, priorities and backoff; MemberQueues has a queue with workers for each member cluster,
//     so that no cluster delays another cluster
//   - event handlers for informers, and the cache indexes with the functions that read them
//   - Writes, with which a controller never acts on a state that is older than its last write
//   - PacingPolicy, which decides when a changed status is written, and StatusWriter, which combines
//     several changes of a Work's status into one write
//   - Events, which records an event only if something changed
//
// Functions that read a cache return objects that may be shared with the cache and must not be
// modified. binding.Copy returns a copy that may be modified.
//
// The subpackage patch writes only the differences between two states of an object, and looptest is
// a test kit.
package loop
