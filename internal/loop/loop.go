// Package loop is the controller kit: queues and their priorities, handlers for the events of
// informers, the tracker for read-your-writes, the outcome of a pass, and events.
//
// Its subpackages are fanout, one queue with workers for each member cluster; lookup, the indexes
// of the caches and the functions that read them; patch and statuswriter, which write only
// differences; recreation, the delay before a deleted Work is created again; and looptest, a test
// kit.
package loop
