// Package bounds answers "how much of the control plane can one member take?": it
// limits what a member cluster sends, before the answer takes memory or time.
//
// Invariants:
//   - Every limit is a field of Limits with a unit, and a default in DefaultLimits.
//   - A limit that is hit ends one request or one watch with an *ExceededError, which names
//     the cluster, the subject, the limit and what was measured. Other kinds and other
//     members go on.
//   - What hits a limit is never data: not an empty list, not "not found".
//   - Nothing is copied. Bytes are counted as they pass, and objects are weighed where
//     they are.
package bounds

import (
	"fmt"
	"time"
)

// Bound is the name of a limit, as the metric and the condition show it.
type Bound string

// The bounds.
const (
	// AnswerBytes bounds the body of one answer, decompressed.
	AnswerBytes Bound = "answer-bytes"
	// EventBytes bounds one event of a watch, decompressed.
	EventBytes Bound = "event-bytes"
	// Values bounds the JSON objects, arrays and elements of arrays in one answer or one
	// event.
	Values Bound = "json-values"
	// Decoded bounds the memory that one answer or event takes when it is decoded into
	// Go types.
	Decoded Bound = "decoded-bytes"
	// WatchTime bounds how long a watch lasts.
	WatchTime Bound = "watch-time"
	// Redirect is a redirect. None is followed.
	Redirect Bound = "redirect"
	// Identity is an object that is not the one that was asked for.
	Identity Bound = "identity"
	// Objects bounds how many objects of a kind a cache holds.
	Objects Bound = "objects"
	// ObjectBytes bounds the memory that the cache of a kind takes.
	ObjectBytes Bound = "object-bytes"
	// Unmarked bounds the objects without the managed label in one list or watch.
	Unmarked Bound = "unmarked-objects"
	// Pages bounds the pages of one list.
	Pages Bound = "pages"
	// Groups bounds the group versions that discovery lists, and Resources their
	// resources.
	Groups    Bound = "group-versions"
	Resources Bound = "resources"
	// Nodes and Pods bound what is counted for the room in a member.
	Nodes Bound = "nodes"
	Pods  Bound = "pods"
	// Requests bounds the different lists of resources that nodes offer or Pods want,
	// ResourceNames the resources that these lists name.
	Requests      Bound = "resource-lists"
	ResourceNames Bound = "resource-names"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits are how much a member may send.
type Limits struct {
	// AnswerBytes is the largest body of an answer, in bytes. A list is read in pages,
	// and a page that is larger is asked for again with fewer objects. etcd takes
	// objects of 1.5 MiB at most.
	AnswerBytes int64
	// EventBytes is the largest event of a watch, in bytes.
	EventBytes int64
	// Values is how many JSON objects, arrays and elements of arrays one answer or event
	// may hold. Each takes up to 320 bytes of memory for 3 bytes of text.
	Values int64
	// DecodedBytes is how much memory one answer or event of nodes or Pods may take when
	// it is decoded, in bytes.
	DecodedBytes int64
	// HeaderBytes is the largest header of an answer, in bytes.
	HeaderBytes int64
	// ErrorBytes is how much of the body of an error is read, MessageBytes how much of
	// its message is kept, both in bytes. Causes is how many of its causes are kept.
	ErrorBytes   int64
	MessageBytes int
	Causes       int
	// RetryAfter is the longest time for which a member can ask a client to wait.
	RetryAfter time.Duration
	// WatchGrace is how long a watch may last beyond the time that was asked for, and
	// WatchTime how long it may last if none was asked for.
	WatchGrace, WatchTime time.Duration

	// Page is how many objects a page of a list is asked for, MinPages the least
	// number of pages that a list may have.
	Page, MinPages int64
	// Objects is how many objects of one kind a cache holds beyond those that were
	// delivered, PerDelivered how many for each of these.
	Objects, PerDelivered int64
	// ObjectBytes is the memory in bytes that the cache of one kind takes beyond what
	// was delivered. BytesPerDelivered is the memory for each delivered object, and
	// BytesPerByte the memory for each byte of its manifest.
	ObjectBytes, BytesPerDelivered, BytesPerByte int64
	// Unmarked is how many objects without the managed label are dropped from one list
	// or watch before it ends.
	Unmarked int64

	// GroupVersions and Resources bound discovery.
	GroupVersions, Resources int
	// Nodes and Pods bound the inventory; Kubernetes supports 5 000 and 150 000.
	Nodes, Pods int
	// RequestBytes bounds the texts of the different lists of resources of all nodes, and
	// of all Pods, in bytes. Most Pods of a cluster share one of a few lists.
	// ResourceNames is how many resources the nodes, and the Pods, may name.
	RequestBytes, ResourceNames int
}

// DefaultLimits return the limits of every member. With them one hostile member costs
// less than 64 MiB.
func DefaultLimits() Limits {
	return Limits{
		AnswerBytes: 4 * mib, EventBytes: 4 * mib, Values: 128 * kib, DecodedBytes: 16 * mib, HeaderBytes: 64 * kib,
		ErrorBytes: 64 * kib, MessageBytes: 2 * kib, Causes: 32, RetryAfter: 10 * time.Second,
		WatchGrace: 30 * time.Second, WatchTime: time.Hour,
		Page: 250, MinPages: 100, Objects: 1000, PerDelivered: 2,
		ObjectBytes: 2 * mib, BytesPerDelivered: 64 * kib, BytesPerByte: 8,
		Unmarked:      10_000,
		GroupVersions: 2000, Resources: 20_000, Nodes: 10_000, Pods: 300_000, RequestBytes: 4 * mib, ResourceNames: 256,
	}
}

// ExceededError is the error of a limit that a member hit.
type ExceededError struct {
	Cluster string
	Bound   Bound
	// Subject is what was asked for, such as "deployments.v1.apps".
	Subject string
	// Limit is the limit, Measured what was counted when it was hit.
	Limit, Measured int64
	// Unit is that of both.
	Unit string
	// Detail replaces limit and measure for what is no amount.
	Detail string
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("cluster %q: %s", e.Cluster, e.What())
}

// What is the error without the cluster.
func (e *ExceededError) What() string {
	if e.Detail != "" {
		return fmt.Sprintf("%s: %s (bound %s)", e.Subject, e.Detail, e.Bound)
	}
	return fmt.Sprintf("%s: %d %s or more, the bound %s allows %d", e.Subject, e.Measured, e.Unit, e.Bound, e.Limit)
}
