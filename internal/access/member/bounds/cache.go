package bounds

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// DeliveredSize is the size of all objects that the control plane delivers to one member.
type DeliveredSize struct {
	// Objects is the number of manifests. Bytes is the sum of the sizes of these manifests.
	Objects, Bytes int64
}

// deliveredMaxAge is how long the delivered size is reused after it was read. The delivered size is
// read only for caches that exceed the base limits.
const deliveredMaxAge = 5 * time.Second

// MemberBounds applies the limits to the caches and clients of one member.
type MemberBounds struct {
	Limits Limits
	Hits   *HitTracker
	// Delivered returns the size of the objects that the control plane delivers to the member. A
	// nil function means that nothing is delivered.
	Delivered func() DeliveredSize
	// Now returns the current time.
	Now func() time.Time

	mu              sync.Mutex
	cachedDelivered DeliveredSize
	cachedAt        time.Time
}

// cacheAllowance returns the number of managed objects, and their size in bytes, that the cache of one
// kind may hold.
func (m *MemberBounds) cacheAllowance() (objects, bytes int64) {
	delivered := m.currentDelivered()
	return m.Limits.Objects + m.Limits.ObjectsPerDelivered*delivered.Objects,
		m.Limits.ObjectBytes + m.Limits.BytesPerDelivered*delivered.Objects + m.Limits.BytesPerByte*delivered.Bytes
}

func (m *MemberBounds) currentDelivered() DeliveredSize {
	if m.Delivered == nil {
		return DeliveredSize{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.Now(); m.cachedAt.IsZero() || now.Sub(m.cachedAt) >= deliveredMaxAge {
		m.cachedDelivered, m.cachedAt = m.Delivered(), now
	}
	return m.cachedDelivered
}

// objectKey identifies an object among the objects of its kind.
type objectKey struct{ namespace, name string }

func objectKeyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GetNamespace(), object.GetName()}
}

// cacheAccount tracks the size of the cache of one kind.
type cacheAccount struct {
	bounds *MemberBounds
	// isManaged is true if the cache contains only managed objects, so that its allowance depends on
	// the delivered objects.
	isManaged bool
	subject   string
	sizes     map[objectKey]int64
	bytes     int64
}

func (m *MemberBounds) newCacheAccount(kind schema.GroupVersionKind, isManaged bool) *cacheAccount {
	return &cacheAccount{bounds: m, isManaged: isManaged, subject: subjectOfKind(kind), sizes: map[objectKey]int64{}}
}

func subjectOfKind(kind schema.GroupVersionKind) string {
	if kind.Group == "" {
		return kind.Kind + "." + kind.Version
	}
	return kind.Kind + "." + kind.Version + "." + kind.Group
}

// put adds an object to the account, or returns an error if the cache would exceed its
// allowance.
func (c *cacheAccount) put(object *unstructured.Unstructured) error {
	weight, at := EstimateMemory(object.Object), objectKeyOf(object)
	previous, known := c.sizes[at]
	objects, bytes := int64(len(c.sizes)), c.bytes+weight-previous
	if !known {
		objects++
	}
	limits := c.bounds.Limits
	if objects > limits.Objects || bytes > limits.ObjectBytes {
		allowedObjects, allowedBytes, unit := limits.OtherObjects, limits.OtherObjectBytes, "objects"
		if c.isManaged {
			allowedObjects, allowedBytes = c.bounds.cacheAllowance()
			unit = "objects with the managed label"
		}
		switch {
		case objects > allowedObjects:
			return c.bounds.Hits.Record(ExceededError{
				Bound: Objects, Subject: c.subject, Limit: allowedObjects, Measured: allowedObjects + 1, Unit: unit,
			})
		case bytes > allowedBytes:
			return c.bounds.Hits.Record(ExceededError{
				Bound: ObjectBytes, Subject: c.subject, Limit: allowedBytes, Measured: allowedBytes + 1, Unit: "bytes of memory",
			})
		}
	}
	c.sizes[at], c.bytes = weight, bytes
	return nil
}

// remove removes an object from the account, and reports whether the account contained it.
func (c *cacheAccount) remove(object *unstructured.Unstructured) bool {
	at := objectKeyOf(object)
	weight, known := c.sizes[at]
	delete(c.sizes, at)
	c.bytes -= weight
	return known
}

// hasManagedLabel reports whether an object has the label with which caches select objects.
func hasManagedLabel(object *unstructured.Unstructured) bool {
	labels, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "labels")
	all, _ := labels.(map[string]any)
	return all[workv1alpha1.ManagedByKarmadaLabel] == workv1alpha1.ManagedByKarmadaLabelValue
}
