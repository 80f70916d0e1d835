package bounds

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Delivered is what the control plane wants to be in one member.
type Delivered struct {
	// Objects counts manifests, Bytes sums up their sizes.
	Objects, Bytes int64
}

// deliveredAge is how long the answer to what was delivered is used. It is asked for
// only by caches that hold more than they may without it.
const deliveredAge = 5 * time.Second

// Caches bounds the caches of one member.
type Caches struct {
	Limits Limits
	Ledger *Ledger
	// Delivered says what is in the member by our will; nil means nothing.
	Delivered func() Delivered
	// Now is the clock.
	Now func() time.Time

	mu    sync.Mutex
	known Delivered
	at    time.Time
}

// allowance is how many objects of a kind a cache may hold, and how many bytes.
func (c *Caches) allowance() (objects, bytes int64) {
	delivered := c.delivered()
	return c.Limits.Objects + c.Limits.PerDelivered*delivered.Objects,
		c.Limits.ObjectBytes + c.Limits.BytesPerDelivered*delivered.Objects + c.Limits.BytesPerByte*delivered.Bytes
}

func (c *Caches) delivered() Delivered {
	if c.Delivered == nil {
		return Delivered{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Now(); c.at.IsZero() || now.Sub(c.at) >= deliveredAge {
		c.known, c.at = c.Delivered(), now
	}
	return c.known
}

// key names an object of a kind.
type key struct{ namespace, name string }

func keyOf(object *unstructured.Unstructured) key {
	return key{object.GetNamespace(), object.GetName()}
}

// account is what a cache of one kind holds.
type account struct {
	caches  *Caches
	subject string
	weights map[key]int64
	bytes   int64
}

func (c *Caches) account(kind schema.GroupVersionKind) *account {
	return &account{caches: c, subject: subjectOfKind(kind), weights: map[key]int64{}}
}

func subjectOfKind(kind schema.GroupVersionKind) string {
	if kind.Group == "" {
		return kind.Kind + "." + kind.Version
	}
	return kind.Kind + "." + kind.Version + "." + kind.Group
}

// put takes an object into account, or returns an error if the cache would hold too
// much with it.
func (a *account) put(object *unstructured.Unstructured) error {
	weight, at := Weigh(object.Object), keyOf(object)
	before, known := a.weights[at]
	objects, bytes := int64(len(a.weights)), a.bytes+weight-before
	if !known {
		objects++
	}
	limits := a.caches.Limits
	if objects > limits.Objects || bytes > limits.ObjectBytes {
		allowedObjects, allowedBytes := a.caches.allowance()
		switch {
		case objects > allowedObjects:
			return a.caches.Ledger.Record(ExceededError{Bound: Objects, Subject: a.subject, Limit: allowedObjects, Measured: allowedObjects + 1, Unit: "objects with the managed label"})
		case bytes > allowedBytes:
			return a.caches.Ledger.Record(ExceededError{Bound: ObjectBytes, Subject: a.subject, Limit: allowedBytes, Measured: allowedBytes + 1, Unit: "bytes of memory"})
		}
	}
	a.weights[at], a.bytes = weight, bytes
	return nil
}

// drop takes an object out, and reports whether it was there.
func (a *account) drop(object *unstructured.Unstructured) bool {
	at := keyOf(object)
	weight, known := a.weights[at]
	delete(a.weights, at)
	a.bytes -= weight
	return known
}

// isMarked reports whether an object bears the label by which caches select.
func isMarked(object *unstructured.Unstructured) bool {
	labels, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "labels")
	all, _ := labels.(map[string]any)
	return all[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue
}
