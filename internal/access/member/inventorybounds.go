package member

import (
	"cmp"
	"errors"
	"fmt"

	"karmada.io/karmada/internal/access/member/bounds"
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

// beginList is called before the first page of a list is read.
func (w inventoryBounds) beginList() {
	w.inventory.mu.Lock()
	defer w.inventory.mu.Unlock()
	w.lists.BeginList()
}

// abortList is called when reading a list failed. It drops the objects that were read.
func (w inventoryBounds) abortList() {
	w.inventory.mu.Lock()
	defer w.inventory.mu.Unlock()
	w.lists.EndList()
}

// checkList returns an error if the objects of a list exceed the limits.
func (w inventoryBounds) checkList(objects int) error {
	w.inventory.mu.Lock()
	size := w.lists.ListedSize()
	w.inventory.mu.Unlock()
	return w.checkAmounts(objects, size)
}

// checkHeld returns an error if the objects that the inventory holds exceed the limits.
func (w inventoryBounds) checkHeld() error {
	w.inventory.mu.Lock()
	size := w.lists.HeldSize()
	objects, pods := w.inventory.tally.Counts()
	w.inventory.mu.Unlock()
	if w.bound == bounds.Pods {
		objects = pods
	}
	return w.checkAmounts(objects, size)
}

func (w inventoryBounds) checkAmounts(objects int, size domain.PoolSize) error {
	limits := w.member.bounds.Limits
	return cmp.Or(
		w.member.checkBound(w.bound, w.subject, "objects", objects, w.limit),
		w.member.checkBound(bounds.ResourceLists, w.subject, "bytes in different lists of resources", size.Bytes, limits.ResourceListBytes),
		w.member.checkBound(bounds.ResourceNames, w.subject, "different names of resources", size.Names, limits.ResourceNames))
}

// objectError returns the error for an object that cannot be counted.
func (w inventoryBounds) objectError(err error) error {
	if !errors.Is(err, domain.ErrTooManyResourceNames) {
		return err
	}
	err = w.member.bounds.Hits.Record(bounds.ExceededError{Bound: bounds.ResourceNames, Subject: w.subject, Detail: "an object has " + err.Error()})
	return fmt.Errorf("reading %s: %w", w.subject, err)
}
