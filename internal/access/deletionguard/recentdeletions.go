package deletionguard

import (
	"sync"
	"time"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// deletionGroup is a group of deletions that are counted together: deletions in a cluster, deletions
// of namespace templates, or all deletions if both fields are empty.
type deletionGroup struct{ cluster, namespace string }

// clusterScope is the namespace of the group of templates without a namespace.
const clusterScope = "(cluster)"

// recentDeletions counts the deletions that began recently. After a restart of the process, the
// deletions in progress are counted again, because each of them needs another decision.
type recentDeletions struct {
	mu sync.Mutex
	// groups holds, for each group, the deleted subjects and the times at which they were added.
	groups      map[deletionGroup]map[string]time.Time
	lastCleanup time.Time
}

func newRecentDeletions() *recentDeletions {
	return &recentDeletions{groups: map[deletionGroup]map[string]time.Time{}}
}

// add adds a subject to a group and returns the number of its subjects within guard.Window, to
// about a fifth of the window. A subject that was added before is counted once.
func (r *recentDeletions) add(group deletionGroup, subject string, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.lastCleanup) > guard.Window/5 {
		r.removeExpired(now)
	}
	subjects := r.groups[group]
	if subjects == nil {
		subjects = map[string]time.Time{}
		r.groups[group] = subjects
	}
	if _, ok := subjects[subject]; !ok {
		subjects[subject] = now
	}
	return len(subjects)
}

// removeExpired removes the subjects that are older than guard.Window. The caller holds r.mu.
func (r *recentDeletions) removeExpired(now time.Time) {
	r.lastCleanup = now
	for group, subjects := range r.groups {
		for subject, addedAt := range subjects {
			if now.Sub(addedAt) > guard.Window {
				delete(subjects, subject)
			}
		}
		if len(subjects) == 0 {
			delete(r.groups, group)
		}
	}
}

func (r *recentDeletions) remove(group deletionGroup) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, group)
}

// countedTemplate returns the template namespace and a unique template name for a Work. Works in several
// clusters that deliver one template have the same template name. A Work that delivers a Namespace is
// counted with the templates in that Namespace, because a Namespace deletion in a member deletes
// their objects too.
func countedTemplate(karmadaWork *workv1alpha1.Work) (namespace, template string) {
	for _, namespaced := range []bool{true, false} {
		key, ok := binding.ReferencedBinding(karmadaWork, namespaced)
		switch {
		case ok && namespaced:
			return key.Namespace, key.String()
		case ok:
			return clusterScope, key.Name
		}
	}
	if owner := work.NamespaceOwner(karmadaWork); owner != nil {
		return owner.Name, "Namespace " + owner.Name
	}
	return clusterScope, karmadaWork.Name
}
