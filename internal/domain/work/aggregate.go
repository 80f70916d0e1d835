package work

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// Circumstances are what is known of the clusters of a binding beside what its
// Works say. The zero value knows of nothing particular.
type Circumstances struct {
	// Unready tells since when a cluster has not been ready; the zero time for one
	// that is, or of which that is not known.
	Unready func(cluster string) time.Time
	// Unrendered tells, by cluster, why the present template could not be made into
	// a Work.
	Unrendered map[string]string
	// Purged are clusters that must be empty before any other gets the template.
	Purged sets.Set[string]
	// StatusBytes is how much of the status in one cluster is reflected, in bytes; 0 means
	// MaxStatusBytes.
	StatusBytes int
}

func (c Circumstances) unready(cluster string) time.Time {
	if c.Unready == nil {
		return time.Time{}
	}
	return c.Unready(cluster)
}

// Account is what the Works of a binding, and the circumstances, tell about its
// template.
type Account struct {
	// Items are one a cluster, sorted by the cluster's name.
	Items []workv1alpha2.AggregatedStatusItem
	// behind are clusters whose members do not have what their Work says now, though
	// an earlier state of it was applied.
	behind map[string]bool
	// unready tells of each cluster that is not ready since when.
	unready map[string]time.Time
	// held are clusters to which changes are held back, settled those of which it is
	// known whether they have the newest state all the same.
	held, settled map[string]bool
	// suspended says what a cluster lacks because dispatching to it is suspended, and
	// for no other known cause.
	suspended map[string]string
	// purging are clusters that others wait for until they are empty.
	purging map[string]bool
}

// Gather makes the account of a binding. Works in deletion, and Works outside any
// execution namespace, tell nothing.
//
// What a member reports counts only once the Work is applied: before that it is
// about something else that was there. A Work that does not hold the template, or
// whose member has not reported it yet, has health Unknown. What a cluster
// reported last is kept when it cannot be reached any more, with a message that
// says from when it is.
func Gather(works []*workv1alpha1.Work, template workv1alpha2.ObjectReference, circumstances Circumstances) Account {
	account := Account{
		Items:  make([]workv1alpha2.AggregatedStatusItem, 0, len(works)+len(circumstances.Unrendered)),
		behind: map[string]bool{}, unready: map[string]time.Time{}, held: map[string]bool{}, settled: map[string]bool{}, purging: map[string]bool{},
		suspended: map[string]string{},
	}
	for _, each := range works {
		cluster, ok := ClusterOf(each.Namespace)
		switch {
		case !ok:
			continue
		case circumstances.Purged.Has(cluster):
			account.purge(cluster, circumstances)
		}
		if each.DeletionTimestamp == nil {
			account.add(cluster, each, template, circumstances)
		}
	}
	account.blame(circumstances.Unrendered)
	account.fit(template)
	slices.SortStableFunc(account.Items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return account
}

func (a *Account) add(cluster string, from *workv1alpha1.Work, template workv1alpha2.ObjectReference, circumstances Circumstances) {
	item, cut := itemOf(cluster, from, template, circumstances.StatusBytes)
	a.held[cluster], a.settled[cluster] = Suspended(from), HeldBack(from)
	a.behind[cluster] = Behind(from)
	if lack := a.lack(&item); a.held[cluster] && lack != "" && item.AppliedMessage == "" {
		a.suspended[cluster] = lack + ", " + suspendedMessage
	}
	since := circumstances.unready(cluster)
	if !since.IsZero() {
		a.unready[cluster] = since
	}
	switch {
	case item.AppliedMessage != "":
	case !since.IsZero() && (item.Applied || a.suspended[cluster] == ""):
		item.AppliedMessage = unreadyMessage(item, since)
	default:
		item.AppliedMessage = cmp.Or(a.suspended[cluster], statusCut(from, template), cut)
	}
	a.Items = append(a.Items, item)
}

// statusCut says that the status of the template in a cluster was reflected in part.
func statusCut(from *workv1alpha1.Work, template workv1alpha2.ObjectReference) string {
	cut := conditions.Get(from.Status.Conditions, workv1alpha1.WorkStatusCut)
	if cut == nil || cut.Status != metav1.ConditionTrue || reportedOn(from, template) == nil {
		return ""
	}
	return cut.Message
}

// lack is what a cluster does not have of its Work; empty when it has everything.
func (a *Account) lack(item *workv1alpha2.AggregatedStatusItem) string {
	switch {
	case !item.Applied:
		return notApplied
	case a.behind[item.ClusterName]:
		return presentNotApplied
	default:
		return ""
	}
}

// purge notes that others wait for a cluster, which may itself be out of reach.
func (a *Account) purge(cluster string, circumstances Circumstances) {
	a.purging[cluster] = true
	if since := circumstances.unready(cluster); !since.IsZero() {
		a.unready[cluster] = since
	}
}

// unreadyMessage bears the time of the change, not the present one, and not the
// reason, which may come and go: it stays the same until the cluster is back.
func unreadyMessage(item workv1alpha2.AggregatedStatusItem, since time.Time) string {
	at := since.UTC().Format(time.RFC3339)
	if item.Applied {
		return fmt.Sprintf("status as of %s: cluster %s is not ready since then", at, item.ClusterName)
	}
	return fmt.Sprintf("cluster %s is not ready since %s", item.ClusterName, at)
}

// blame says of the clusters for which no Work could be made why. What runs there
// of an earlier template still counts.
func (a *Account) blame(unrendered map[string]string) {
	left := maps.Clone(unrendered)
	for i := range a.Items {
		item := &a.Items[i]
		if message, ok := left[item.ClusterName]; ok {
			item.Applied, item.AppliedMessage = false, message
			delete(a.suspended, item.ClusterName)
			delete(left, item.ClusterName)
		}
	}
	for cluster, message := range left {
		a.Items = append(a.Items, workv1alpha2.AggregatedStatusItem{
			ClusterName: cluster, AppliedMessage: message, Health: workv1alpha2.ResourceUnknown,
		})
	}
}

// Behind tells that an earlier state of a Work was applied, and the present one was
// not yet. A condition that does not say which state it is about is believed.
func Behind(of *workv1alpha1.Work) bool {
	applied := conditions.Get(of.Status.Conditions, workv1alpha1.WorkApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue &&
		applied.ObservedGeneration != 0 && applied.ObservedGeneration < of.Generation
}

// HeldBack tells that changes of a Work are held back and whoever delivers it has
// seen that: if it is behind then, it stays behind.
func HeldBack(of *workv1alpha1.Work) bool {
	dispatching := conditions.Get(of.Status.Conditions, workv1alpha1.WorkDispatching)
	return Suspended(of) && dispatching != nil && dispatching.Status == metav1.ConditionFalse &&
		(dispatching.ObservedGeneration == 0 || dispatching.ObservedGeneration >= of.Generation)
}

// fit cuts statuses and messages down to equal shares if they are larger than a
// binding may be. The agent of one cluster must not keep the others from being
// reported.
func (a *Account) fit(template workv1alpha2.ObjectReference) {
	total := 0
	for i := range a.Items {
		total += len(rawOf(a.Items[i].Status)) + len(a.Items[i].AppliedMessage)
	}
	if total <= MaxAccountBytes {
		return
	}
	share := MaxAccountBytes / len(a.Items)
	messages := max(share/4, 8)
	for i := range a.Items {
		item := &a.Items[i]
		status, cut := CutStatus(item.Status, share-messages)
		if item.Status = status; cut != nil {
			item.AppliedMessage = cmp.Or(item.AppliedMessage, cut.Describe(item.ClusterName, workv1alpha1.ResourceIdentifier{
				Kind: template.Kind, Namespace: template.Namespace, Name: template.Name,
			}))
		}
		item.AppliedMessage = conditions.Shorten(item.AppliedMessage, messages)
	}
}

// itemOf is what a Work tells of the template, and what was cut off from it: the Works
// of a pull cluster are written by its agent, which is not trusted to keep to a size.
func itemOf(cluster string, from *workv1alpha1.Work, template workv1alpha2.ObjectReference, limit int) (item workv1alpha2.AggregatedStatusItem, cut string) {
	item = workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
	applied := conditions.Get(from.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil {
		return item, ""
	}
	if applied.Status != metav1.ConditionTrue {
		item.AppliedMessage = applied.Message
		return item, ""
	}
	item.Applied = true
	reported := reportedOn(from, template)
	if reported == nil {
		return item, ""
	}
	status, left := CutStatus(reported.Status, limit)
	if left != nil {
		cut = left.Describe(cluster, reported.Identifier)
	}
	item.Status = status.DeepCopy()
	item.Health = cmp.Or(workv1alpha2.ResourceHealth(reported.Health), workv1alpha2.ResourceUnknown)
	return item, cut
}

// reportedOn is the member's report on the template; nil when there is none.
// Manifests are not decoded for it: this runs for every Work of a binding whenever
// one of them changes, and reports name what they are about.
func reportedOn(from *workv1alpha1.Work, template workv1alpha2.ObjectReference) *workv1alpha1.ManifestStatus {
	kind := schema.FromAPIVersionAndKind(template.APIVersion, template.Kind)
	for i := range from.Status.ManifestStatuses {
		status := &from.Status.ManifestStatuses[i]
		id := status.Identifier
		if id.Group == kind.Group && id.Version == kind.Version && id.Kind == kind.Kind &&
			id.Namespace == template.Namespace && id.Name == template.Name &&
			id.Ordinal < len(from.Spec.Workload.Manifests) {
			return status
		}
	}
	return nil
}

// SameItems tells whether two lists say the same, however the statuses in them
// are laid out.
func SameItems(a, b []workv1alpha2.AggregatedStatusItem) bool {
	return slices.EqualFunc(a, b, func(left, right workv1alpha2.AggregatedStatusItem) bool {
		return left.ClusterName == right.ClusterName && left.Applied == right.Applied &&
			left.AppliedMessage == right.AppliedMessage && left.Health == right.Health &&
			sameJSON(rawOf(left.Status), rawOf(right.Status))
	})
}

func rawOf(status *runtime.RawExtension) []byte {
	if status == nil {
		return nil
	}
	return status.Raw
}
