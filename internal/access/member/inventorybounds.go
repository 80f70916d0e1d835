package member

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/watches"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// inventoryBounds limits the number of objects of one kind in the inventory. For a new list only
// the objects of the list count. The objects that the inventory already holds do not count, because
// otherwise the inventory could never recover after a member exceeded a limit once.
type inventoryBounds struct {
	member    *Member
	inventory *inventory
	bound     bounds.Bound
	subject   string
	// limit is the maximum number of objects.
	limit int
	lists *domain.ResourceListPool
}

// inventorySink counts the objects of one kind within the bounds.
type inventorySink[T any] struct {
	watches.Reduced[T]
	bounds inventoryBounds
}

// BeginList implements watches.Sink, as do the methods below.
func (i *inventorySink[T]) BeginList() {
	i.bounds.beginList()
	i.Reduced.BeginList()
}

// AddListed counts a listed object.
func (i *inventorySink[T]) AddListed(object runtime.Object) error {
	if err := i.Reduced.AddListed(object); err != nil {
		return i.bounds.objectError(err)
	}
	return i.bounds.limitListed(i.Listed())
}

// EndList replaces the counted objects by those of a complete list.
func (i *inventorySink[T]) EndList(err error) {
	if err != nil {
		i.bounds.abortList()
	}
	i.Reduced.EndList(err)
}

// Apply counts a changed object.
func (i *inventorySink[T]) Apply(event watch.Event) error {
	if err := i.Reduced.Apply(event); err != nil {
		return i.bounds.objectError(err)
	}
	return i.bounds.limitHeld()
}

// beginList is called before the first page of a list is read.
func (i inventoryBounds) beginList() {
	i.inventory.mu.Lock()
	defer i.inventory.mu.Unlock()
	i.lists.BeginList()
}

// abortList is called when reading a list failed. It drops the objects that were read.
func (i inventoryBounds) abortList() {
	i.inventory.mu.Lock()
	defer i.inventory.mu.Unlock()
	i.lists.EndList()
}

// limitListed returns an error if the objects of a list exceed the limits.
func (i inventoryBounds) limitListed(objects int) error {
	i.inventory.mu.Lock()
	size := i.lists.ListedSize()
	i.inventory.mu.Unlock()
	return i.limitAmounts(objects, size)
}

// limitHeld returns an error if the objects that the inventory holds exceed the limits.
func (i inventoryBounds) limitHeld() error {
	i.inventory.mu.Lock()
	size := i.lists.HeldSize()
	objects, pods := i.inventory.tally.Counts()
	i.inventory.mu.Unlock()
	if i.bound == bounds.Pods {
		objects = pods
	}
	return i.limitAmounts(objects, size)
}

func (i inventoryBounds) limitAmounts(objects int, size domain.PoolSize) error {
	limits := i.member.bounds.Limits
	return cmp.Or(
		i.member.limitAmount(i.bound, i.subject, "objects", objects, i.limit),
		i.member.limitAmount(bounds.ResourceLists, i.subject, "bytes in different lists of resources", size.Bytes, limits.ResourceListBytes),
		i.member.limitAmount(bounds.ResourceNames, i.subject, "different names of resources", size.Names, limits.ResourceNames))
}

// objectError returns the error for an object that cannot be counted.
func (i inventoryBounds) objectError(err error) error {
	if !errors.Is(err, domain.ErrTooManyResourceNames) {
		return err
	}
	err = i.member.bounds.Hits.Record(bounds.ExceededError{Bound: bounds.ResourceNames, Subject: i.subject,
		Detail: "an object has " + err.Error()})
	return fmt.Errorf("reading %s: %w", i.subject, err)
}
