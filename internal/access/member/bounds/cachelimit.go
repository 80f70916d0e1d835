package bounds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/domain/conditions"
)

// CacheLimit limits the objects of one kind that a cache receives from its member. For a new list only
// the objects of that list count, because otherwise the cache could never recover after the member
// exceeded a limit once. A CacheLimit serves one watch.
type CacheLimit struct {
	kind   schema.GroupVersionKind
	bounds *MemberBounds
	// isManaged is true if the cache contains only objects with the managed label.
	isManaged bool
	// account tracks the size of the cache. listAccount tracks the size of the list that is being read.
	account, listAccount *cacheAccount
	// unlabeled and unlabeledListed are the numbers of objects without the managed label since the
	// last list and in the current list.
	unlabeled, unlabeledListed int64
}

// NewCacheLimit returns the limit for the objects of a kind. isManaged means that the cache selects
// objects by the managed label.
func (m *MemberBounds) NewCacheLimit(kind schema.GroupVersionKind, isManaged bool) *CacheLimit {
	return &CacheLimit{kind: kind, bounds: m, isManaged: isManaged, account: m.newCacheAccount(kind, isManaged)}
}

// BeginList is called before the first page of a list is read.
func (c *CacheLimit) BeginList() {
	c.listAccount, c.unlabeledListed = c.bounds.newCacheAccount(c.kind, c.isManaged), 0
}

// EndList is called after the last page of a list was read. err is not nil if the list failed.
func (c *CacheLimit) EndList(err error) {
	if err == nil {
		c.account, c.unlabeled = c.listAccount, 0
	}
	c.listAccount = nil
}

// AdmitListed reports whether the cache takes an object of the current list. A cache of managed objects
// drops objects without the managed label.
func (c *CacheLimit) AdmitListed(listed runtime.Object) (isAdmitted bool, err error) {
	object, ok := listed.(*unstructured.Unstructured)
	if !ok {
		return false, c.recordWrongObject(fmt.Sprintf("%T instead of an object", listed))
	}
	if c.isManaged && !hasManagedLabel(object) {
		c.unlabeledListed++
		return false, c.limitUnlabeled(c.unlabeledListed)
	}
	if err := c.validateObject(object); err != nil {
		return false, err
	}
	object.SetManagedFields(nil)
	return true, c.listAccount.put(object)
}

// AdmitEvent reports whether the cache takes an event. It converts the event of an object that lost its
// label to a deletion, as an API server does for a watch with a label selector.
func (c *CacheLimit) AdmitEvent(event watch.Event) (_ watch.Event, isAdmitted bool, err error) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return event, false, c.recordWrongObject(fmt.Sprintf("%T instead of an object", event.Object))
	}
	if c.isManaged && event.Type != watch.Deleted && !hasManagedLabel(object) {
		c.unlabeled++
		if err := c.limitUnlabeled(c.unlabeled); err != nil {
			return event, false, err
		}
		event.Type = watch.Deleted
	}
	if event.Type == watch.Deleted {
		return event, c.account.remove(object), nil
	}
	if err := c.validateObject(object); err != nil {
		return event, false, err
	}
	object.SetManagedFields(nil)
	return event, true, c.account.put(object)
}

// validateObject returns an error if an object has another kind than requested, or no valid name.
func (c *CacheLimit) validateObject(object *unstructured.Unstructured) error {
	if kind := object.GroupVersionKind(); kind != c.kind {
		return c.recordWrongObject(fmt.Sprintf("an object of kind %q", conditions.Truncate(conditions.ToPrintable(kind.String()), 128)))
	}
	if object.GetName() == "" || len(object.GetName()) > maxNameLength || len(object.GetNamespace()) > maxNameLength {
		return c.recordWrongObject("an object without a valid name")
	}
	return nil
}

func (c *CacheLimit) recordWrongObject(response string) error {
	return c.bounds.Hits.Record(ExceededError{Bound: ObjectIdentity, Subject: c.account.subject,
		Detail: "the member responds with " + response})
}

// limitUnlabeled returns an error if too many objects lack the managed label.
func (c *CacheLimit) limitUnlabeled(count int64) error {
	limit := c.bounds.Limits.UnlabeledObjects
	if count <= limit {
		return nil
	}
	return c.bounds.Hits.Record(ExceededError{
		Bound: UnlabeledObjects, Subject: c.account.subject, Limit: limit, Measured: limit + 1,
		Unit: "objects without the managed label, which the label selector excludes",
	})
}
