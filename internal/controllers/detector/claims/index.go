package claims

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

// Index maps each policy to the templates that contain its claim, including templates without a
// binding. The watches of kinds update the index, so it may lag behind. A claim that the index does
// not contain yet is handled when its template is reconciled.
type Index struct {
	mu         sync.RWMutex
	byID       map[string]sets.Set[templates.Ref]
	byTemplate map[templates.Ref]string
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{byID: map[string]sets.Set[templates.Ref]{}, byTemplate: map[templates.Ref]string{}}
}

// Update records the claim of a template, if the template has one.
func (c *Index) Update(r templates.Ref, template metav1.Object) {
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
		c.byID[claim.ID] = sets.New[templates.Ref]()
	}
	c.byID[claim.ID].Insert(r)
}

// Delete removes a deleted template.
func (c *Index) Delete(r templates.Ref) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(r)
}

// DeleteKind removes all templates of a kind.
func (c *Index) DeleteKind(kind schema.GroupVersionKind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.byTemplate {
		if r.Kind == kind {
			c.removeLocked(r)
		}
	}
}

func (c *Index) removeLocked(r templates.Ref) {
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

// IsClaimed reports whether the template contains the claim of any policy.
func (c *Index) IsClaimed(r templates.Ref) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byTemplate[r] != ""
}

// TemplatesOf returns the templates that contain the permanent ID of a policy, in any order.
func (c *Index) TemplatesOf(id string) []templates.Ref {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.byID[id].UnsortedList()
}
