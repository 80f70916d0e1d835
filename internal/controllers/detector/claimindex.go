package detector

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/domain/policy"
)

// claimIndex maps each policy to the templates that contain its claim, including templates without a
// binding. The watches of kinds update the index, so it may lag behind. A claim that the index does
// not contain yet is handled when its template is reconciled.
type claimIndex struct {
	mu         sync.RWMutex
	byID       map[string]sets.Set[templateRef]
	byTemplate map[templateRef]string
}

// newClaimIndex returns an empty index.
func newClaimIndex() *claimIndex {
	return &claimIndex{byID: map[string]sets.Set[templateRef]{}, byTemplate: map[templateRef]string{}}
}

// update records the claim of a template, if the template has one.
func (i *claimIndex) update(r templateRef, template metav1.Object) {
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
		i.byID[claim.ID] = sets.New[templateRef]()
	}
	i.byID[claim.ID].Insert(r)
}

// delete removes a deleted template.
func (i *claimIndex) delete(r templateRef) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.removeLocked(r)
}

// deleteKind removes all templates of a kind.
func (i *claimIndex) deleteKind(kind schema.GroupVersionKind) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for r := range i.byTemplate {
		if r.Kind == kind {
			i.removeLocked(r)
		}
	}
}

func (i *claimIndex) removeLocked(r templateRef) {
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

// isClaimed reports whether the template contains the claim of any policy.
func (i *claimIndex) isClaimed(r templateRef) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byTemplate[r] != ""
}

// templatesOf returns the templates that contain the permanent ID of a policy, in any order.
func (i *claimIndex) templatesOf(id string) []templateRef {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.byID[id].UnsortedList()
}
