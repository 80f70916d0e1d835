package detector

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// claimIndex maps each policy to the templates that carry its claim, including templates
// without a binding. It is updated by the watches of kinds and may lag behind. A claim that it
// does not contain yet is handled when its template is reconciled.
type claimIndex struct {
	mu         sync.RWMutex
	byID       map[string]sets.Set[templateRef]
	byTemplate map[templateRef]string
}

func newClaimIndex() *claimIndex {
	return &claimIndex{byID: map[string]sets.Set[templateRef]{}, byTemplate: map[templateRef]string{}}
}

// update records the claim that a template carries, if any.
func (c *claimIndex) update(r templateRef, template metav1.Object) {
	claim, _ := policy.ClaimedBy(template)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byTemplate[r] == claim.ID {
		return
	}
	c.removeLocked(r)
	if claim.ID == "" {
		return
	}
	c.byTemplate[r] = claim.ID
	if c.byID[claim.ID] == nil {
		c.byID[claim.ID] = sets.New[templateRef]()
	}
	c.byID[claim.ID].Insert(r)
}

// delete removes a deleted template.
func (c *claimIndex) delete(r templateRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(r)
}

// deleteKind removes all templates of a kind.
func (c *claimIndex) deleteKind(kind schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.byTemplate {
		if r.kind == kind {
			c.removeLocked(r)
		}
	}
}

func (c *claimIndex) removeLocked(r templateRef) {
	id, ok := c.byTemplate[r]
	if !ok {
		return
	}
	delete(c.byTemplate, r)
	c.byID[id].Delete(r)
	if c.byID[id].Len() == 0 {
		delete(c.byID, id)
	}
}

// isClaimed reports whether the template carries the claim of any policy.
func (c *claimIndex) isClaimed(r templateRef) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byTemplate[r] != ""
}

// templatesOf returns the templates that carry the permanent ID of a policy, in no order.
func (c *claimIndex) templatesOf(id string) []templateRef {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id].UnsortedList()
}
