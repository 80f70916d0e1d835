package work

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// AggregateItems is what the Works of a binding tell about its template, one item
// a cluster, sorted by the cluster's name. Works in deletion, and Works outside
// any execution namespace, tell nothing.
//
// What a member reports counts only once the Work is applied: before that it is
// about something else that was there. A Work that does not hold the template, or
// whose member has not reported it yet, has health Unknown.
func AggregateItems(works []*workv1alpha1.Work, template workv1alpha2.ObjectReference) []workv1alpha2.AggregatedStatusItem {
	items := make([]workv1alpha2.AggregatedStatusItem, 0, len(works))
	for _, each := range works {
		cluster, ok := ClusterOf(each.Namespace)
		if !ok || each.DeletionTimestamp != nil {
			continue
		}
		items = append(items, itemOf(cluster, each, template))
	}
	slices.SortStableFunc(items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return items
}

func itemOf(cluster string, from *workv1alpha1.Work, template workv1alpha2.ObjectReference) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
	applied := conditions.Get(from.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil {
		return item
	}
	if applied.Status != metav1.ConditionTrue {
		item.AppliedMessage = applied.Message
		return item
	}
	item.Applied = true
	reported := reportedOn(from, template)
	if reported == nil {
		return item
	}
	item.Status = reported.Status.DeepCopy()
	item.Health = cmp.Or(workv1alpha2.ResourceHealth(reported.Health), workv1alpha2.ResourceUnknown)
	return item
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

// FullyApplied is the condition that all expected clusters have the template, and
// no others. Generation is that of the binding; the time of a transition is left
// to the caller.
func FullyApplied(expected sets.Set[string], items []workv1alpha2.AggregatedStatusItem, generation int64) metav1.Condition {
	for _, item := range items {
		if !item.Applied || !expected.Has(item.ClusterName) {
			return notFullyApplied(generation)
		}
	}
	if len(expected) == 0 || len(expected) != len(items) {
		return notFullyApplied(generation)
	}
	return metav1.Condition{
		Type: workv1alpha2.FullyApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: workv1alpha2.FullyAppliedSuccessReason, Message: workv1alpha2.FullyAppliedSuccessMessage,
	}
}

func notFullyApplied(generation int64) metav1.Condition {
	return metav1.Condition{
		Type: workv1alpha2.FullyApplied, Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: workv1alpha2.FullyAppliedFailedReason, Message: workv1alpha2.FullyAppliedFailedMessage,
	}
}

func rawOf(status *runtime.RawExtension) []byte {
	if status == nil {
		return nil
	}
	return status.Raw
}
