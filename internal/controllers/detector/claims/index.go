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
func (i *Index) Update(r templates.Ref, template metav1.Object) {
	claim, _ := policy.ClaimedBy(template)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byTemplate[r] == claim.ID {
		return
	}
	i.removeLocked(r)
	if claim.ID == "" {
		return
	}
	i.byTemplate[r] = claim.ID
	if i.byID[claim.ID] == nil {
		i.byID[claim.ID] = sets.New[templates.Ref]()
	}
	i.byID[claim.ID].Insert(r)
}

// Delete removes a deleted template.
func (i *Index) Delete(r templates.Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removeLocked(r)
}

// DeleteKind removes all templates of a kind.
func (i *Index) DeleteKind(kind schema.GroupVersionKind) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for r := range i.byTemplate {
		if r.Kind == kind {
			i.removeLocked(r)
		}
	}
}

func (i *Index) removeLocked(r templates.Ref) {
	id, ok := i.byTemplate[r]
	if !ok {
		return
	}
	delete(i.byTemplate, r)
	i.byID[id].Delete(r)
	if i.byID[id].Len() == 0 {
		delete(i.byID, id)
	}
}

// IsClaimed reports whether the template contains the claim of any policy.
func (i *Index) IsClaimed(r templates.Ref) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byTemplate[r] != ""
}

// TemplatesOf returns the templates that contain the permanent ID of a policy, in any order.
func (i *Index) TemplatesOf(id string) []templates.Ref {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byID[id].UnsortedList()
}
