package detector

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// claims knows which templates carry the claim of which policy, also those
// without a binding. It follows the watched kinds and may lag: a claim that it
// does not know yet is met when its template is looked at.
type claims struct {
	mu         sync.RWMutex
	byID       map[string]sets.Set[reference]
	byTemplate map[reference]string
}

func newClaims() *claims {
	return &claims{byID: map[string]sets.Set[reference]{}, byTemplate: map[reference]string{}}
}

// observe notes whose claim a template carries, if any.
func (c *claims) observe(r reference, template metav1.Object) {
	claim, _ := policy.ClaimedBy(template)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byTemplate[r] == claim.ID {
		return
	}
	c.remove(r)
	if claim.ID == "" {
		return
	}
	c.byTemplate[r] = claim.ID
	if c.byID[claim.ID] == nil {
		c.byID[claim.ID] = sets.New[reference]()
	}
	c.byID[claim.ID].Insert(r)
}

// forget drops a template that is gone.
func (c *claims) forget(r reference) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(r)
}

// dropKind forgets all templates of a kind.
func (c *claims) dropKind(kind schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.byTemplate {
		if r.kind == kind {
			c.remove(r)
		}
	}
}

func (c *claims) remove(r reference) {
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

// has reports whether the template carries the claim of any policy.
func (c *claims) has(r reference) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byTemplate[r] != ""
}

// of returns the templates that carry the id of a policy, in no order.
func (c *claims) of(id string) []reference {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id].UnsortedList()
}
