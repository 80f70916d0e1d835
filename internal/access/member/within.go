package member

import (
	"cmp"
	"errors"
	"fmt"

	"karmada.io/karmada/internal/access/member/bounds"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// within are the bounds of what the inventory takes in of one kind. A list is measured by
// what it brings: what is held from before must not fail it, or a member that exceeded a
// bound once could never be counted again.
type within struct {
	member    *Member
	inventory *inventory
	bound     bounds.Bound
	subject   string
	// limit is how many objects there may be.
	limit int
	lists *domain.Lists
}

// begin is called before the first page of a list is read.
func (w within) begin() {
	w.inventory.mu.Lock()
	defer w.inventory.mu.Unlock()
	w.lists.Begin()
}

// end is called when reading a list failed. What the list brought is dropped.
func (w within) end() {
	w.inventory.mu.Lock()
	defer w.inventory.mu.Unlock()
	w.lists.End()
}

// checkList returns an error if a list brings more than the bounds allow.
func (w within) checkList(objects int) error {
	w.inventory.mu.Lock()
	size := w.lists.Listed()
	w.inventory.mu.Unlock()
	return w.check(objects, size)
}

// checkHeld returns an error if more is held than the bounds allow.
func (w within) checkHeld() error {
	w.inventory.mu.Lock()
	size := w.lists.Held()
	objects, pods := w.inventory.tally.Counted()
	w.inventory.mu.Unlock()
	if w.bound == bounds.Pods {
		objects = pods
	}
	return w.check(objects, size)
}

func (w within) check(objects int, size domain.Size) error {
	limits := w.member.bounds.Limits
	return cmp.Or(
		w.member.exceeds(w.bound, w.subject, "objects", objects, w.limit),
		w.member.exceeds(bounds.ResourceLists, w.subject, "bytes in different lists of resources", size.Bytes, limits.ResourceListBytes),
		w.member.exceeds(bounds.ResourceNames, w.subject, "different names of resources", size.Names, limits.ResourceNames))
}

// refused returns the error of an object that cannot be counted.
func (w within) refused(err error) error {
	if !errors.Is(err, domain.ErrResourceNames) {
		return err
	}
	err = w.member.bounds.Hits.Record(bounds.ExceededError{Bound: bounds.ResourceNames, Subject: w.subject, Detail: "an object has " + err.Error()})
	return fmt.Errorf("reading %s: %w", w.subject, err)
}
