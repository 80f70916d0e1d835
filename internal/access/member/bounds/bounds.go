// Package bounds limits the memory and time of the control plane that one member can use. It
// limits the data from the member before the data uses memory or time.
//
// Invariants:
//   - Every limit is a field of Limits with a unit, and has a default in DefaultLimits.
//   - A limit that is exceeded ends one request or one watch with an *ExceededError. The error
//     names the cluster, the subject, the limit and the measured value. Other kinds and other
//     members are not affected.
//   - A response that exceeds a limit is always an error. It is never treated as an empty list or as
//     "not found".
//   - The checks copy no data. They count bytes while the bytes are read, and estimate the memory
//     of objects in place.
package bounds

import (
	"fmt"
	"time"
)

// Bound is the name of a limit in the metric and in the condition.
type Bound string

// The names of all limits.
const (
	// AnswerBytes limits the decompressed body of one response.
	AnswerBytes Bound = "answer-bytes"
	// EventBytes limits one decompressed event of a watch.
	EventBytes Bound = "event-bytes"
	// JSONValues limits the number of JSON objects, arrays and array elements in one response or
	// event.
	JSONValues Bound = "json-values"
	// DecodedBytes limits the memory that one response or event takes when it is decoded into Go
	// types.
	DecodedBytes Bound = "decoded-bytes"
	// WatchTime limits the duration of a watch.
	WatchTime Bound = "watch-time"
	// Redirect means that the member responded with a redirect. Redirects are not followed.
	Redirect Bound = "redirect"
	// ObjectIdentity means that the member responded with another object than the requested one.
	ObjectIdentity Bound = "identity"
	// Objects limits the number of objects of one kind in a cache.
	Objects Bound = "objects"
	// ObjectBytes limits the memory of the cache of one kind.
	ObjectBytes Bound = "object-bytes"
	// UnlabeledObjects limits the number of objects without the managed label in one list or watch.
	UnlabeledObjects Bound = "unmarked-objects"
	// Pages limits the number of pages of one list.
	Pages Bound = "pages"
	// GroupVersions limits the number of group versions in discovery. Resources limits the number
	// of resources in these group versions.
	GroupVersions Bound = "group-versions"
	Resources     Bound = "resources"
	// Nodes and Pods limit the numbers of objects that the inventory counts.
	Nodes Bound = "nodes"
	Pods  Bound = "pods"
	// ResourceLists limits the size of the distinct resource lists that nodes offer or Pods
	// request. ResourceNames limits the number of resources that these lists name.
	ResourceLists Bound = "resource-lists"
	ResourceNames Bound = "resource-names"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// Limits are the limits for the responses of one member.
type Limits struct {
	// AnswerBytes is the maximum size of the body of a response, in bytes. A list is read in pages,
	// and a page that is too large is requested again with fewer objects. A single object fits,
	// because etcd stores objects of at most 1.5 MiB.
	AnswerBytes int64
	// EventBytes is the maximum size of one event of a watch, in bytes.
	EventBytes int64
	// JSONValues is the maximum number of JSON objects, arrays and array elements in one response or
	// event. Each of them can take up to 320 bytes of memory for 3 bytes of text.
	JSONValues int64
	// DecodedBytes is the maximum memory, in bytes, that one response or event with nodes or Pods
	// takes when it is decoded.
	DecodedBytes int64
	// HeaderBytes is the maximum size of the header of a response, in bytes.
	HeaderBytes int64
	// ErrorBytes is the maximum size of the body of an error, in bytes. MessageBytes is the maximum
	// size of the message of an error, in bytes. Causes is the maximum number of causes of an
	// error. The rest of an error is truncated.
	ErrorBytes   int64
	MessageBytes int
	Causes       int
	// RetryAfter is the longest delay that a member can request with a Retry-After header.
	RetryAfter time.Duration
	// WatchGrace is how long a watch may exceed its requested timeout. WatchTime is the maximum
	// duration of a watch without a requested timeout.
	WatchGrace, WatchTime time.Duration

	// PageSize is the number of objects that are requested for one page of a list. MinPages is the
	// number of pages that every list may have.
	PageSize, MinPages int64
	// Objects is the number of objects of one kind that a cache may hold in addition to the
	// delivered objects. ObjectsPerDelivered is the number of further objects that the cache may
	// hold for each delivered object.
	Objects, ObjectsPerDelivered int64
	// ObjectBytes is the memory, in bytes, that the cache of one kind may take if nothing was
	// delivered. BytesPerDelivered is the additional memory for each delivered object. BytesPerByte
	// is the additional memory for each byte of the manifests of the delivered objects.
	ObjectBytes, BytesPerDelivered, BytesPerByte int64
	// OtherObjects is the number of objects of one kind that a cache may hold if it does not select
	// objects by the managed label. OtherObjectBytes is the memory, in bytes, that it may take.
	OtherObjects, OtherObjectBytes int64
	// UnlabeledObjects is the number of objects without the managed label that one list or watch
	// may contain before it is ended. These objects are dropped.
	UnlabeledObjects int64

	// GroupVersions and Resources are the maximum numbers of group versions and resources in
	// discovery.
	GroupVersions, Resources int
	// Nodes and Pods are the maximum numbers of objects in the inventory. Kubernetes supports 5 000
	// nodes and 150 000 Pods.
	Nodes, Pods int
	// ResourceListBytes is the maximum total size, in bytes, of the distinct resource lists of all
	// nodes, and separately of all Pods. It can be small, because most Pods of a cluster share a
	// few lists. ResourceNames is the maximum number of resources that the nodes, and separately
	// the Pods, may name.
	ResourceListBytes, ResourceNames int
}

// DefaultLimits returns the limits that apply to every member. With these limits one hostile member
// can use less than 64 MiB.
func DefaultLimits() Limits {
	return Limits{
		AnswerBytes: 4 * mib, EventBytes: 4 * mib, JSONValues: 128 * kib, DecodedBytes: 16 * mib, HeaderBytes: 64 * kib,
		ErrorBytes: 64 * kib, MessageBytes: 2 * kib, Causes: 32, RetryAfter: 10 * time.Second,
		WatchGrace: 30 * time.Second, WatchTime: time.Hour,
		PageSize: 250, MinPages: 100, Objects: 1000, ObjectsPerDelivered: 2,
		ObjectBytes: 2 * mib, BytesPerDelivered: 64 * kib, BytesPerByte: 8,
		OtherObjects: 50_000, OtherObjectBytes: 48 * mib,
		UnlabeledObjects: 10_000,
		GroupVersions:    2000, Resources: 20_000, Nodes: 10_000, Pods: 300_000, ResourceListBytes: 4 * mib, ResourceNames: 256,
	}
}

// ExceededError reports that a member exceeded a limit.
type ExceededError struct {
	Cluster string
	Bound   Bound
	// Subject is the requested resource, such as "deployments.v1.apps".
	Subject string
	// Measured is the value that was measured when the request was ended.
	Limit, Measured int64
	// Unit is the unit of Limit and Measured.
	Unit string
	// Detail replaces Limit and Measured in the message if the limit is not a number.
	Detail string
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("cluster %q: %s", e.Cluster, e.Description())
}

// Description returns the error message without the cluster.
func (e *ExceededError) Description() string {
	if e.Detail != "" {
		return fmt.Sprintf("%s: %s (bound %s)", e.Subject, e.Detail, e.Bound)
	}
	return fmt.Sprintf("%s: %d %s or more, the bound %s allows %d", e.Subject, e.Measured, e.Unit, e.Bound, e.Limit)
}
