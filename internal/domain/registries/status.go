package registries

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// maxStatusKinds limits the entries of a status, because an object has at most 1.5 MiB.
	maxStatusKinds = 2000
	// maxStatusMessage limits the message of one entry in bytes.
	maxStatusMessage = 256
	// countTolerance and minLargeCount are the differences of a count above which it is written soon, as a
	// part of the count and as a number of objects.
	countTolerance = 0.1
	minLargeCount  = 10
)

// Source is what became of one selected kind in one cluster.
type Source struct {
	Cluster string
	searchv1alpha1.RegistryKindStatus
}

// IsPending reports whether the source is about to be listed for the first time, and no problem is known.
func (s Source) IsPending() bool {
	return s.State == searchv1alpha1.RegistryKindWaiting && s.Message == ""
}

// HasProblem reports whether the source is not as users expect, and does not just need time.
func (s Source) HasProblem() bool {
	return s.State != searchv1alpha1.RegistryKindCurrent && !s.IsPending()
}

// NextStatus returns the status of a registry with a generation. The time at which a state began is kept
// if the stored state is the same, so that a restart of the process changes nothing.
func NextStatus(stored searchv1alpha1.ResourceRegistryStatus, sources []Source, generation int64,
	now time.Time) searchv1alpha1.ResourceRegistryStatus {
	sources = slices.Clone(sources)
	entries := entriesOf(stored)
	for i := range sources {
		if old, found := entries[keyOf(sources[i])]; found && old.State == sources[i].State {
			sources[i].Since = old.Since
		}
		sources[i].Message = conditions.Truncate(sources[i].Message, maxStatusMessage)
	}
	next := searchv1alpha1.ResourceRegistryStatus{Conditions: slices.Clone(stored.Conditions)}
	condition := cachedCondition(sources)
	condition.ObservedGeneration, condition.LastTransitionTime = generation, metav1.NewTime(now)
	conditions.Set(&next.Conditions, condition)
	next.Clusters = groupByCluster(limitSources(sources))
	return next
}

// sourceKey identifies a source in a status.
type sourceKey struct{ cluster, apiVersion, kind string }

func keyOf(s Source) sourceKey { return sourceKey{s.Cluster, s.APIVersion, s.Kind} }

// entriesOf returns the entries of a status.
func entriesOf(stored searchv1alpha1.ResourceRegistryStatus) map[sourceKey]searchv1alpha1.RegistryKindStatus {
	entries := map[sourceKey]searchv1alpha1.RegistryKindStatus{}
	for _, cluster := range stored.Clusters {
		for _, kind := range cluster.Kinds {
			entries[sourceKey{cluster.Name, kind.APIVersion, kind.Kind}] = kind
		}
	}
	return entries
}

// WithStored returns the sources in which each pending source has its stored entry. It is used after a
// start of the process, when the objects will probably be the same as before.
func WithStored(stored searchv1alpha1.ResourceRegistryStatus, sources []Source) []Source {
	sources = slices.Clone(sources)
	entries := entriesOf(stored)
	for i := range sources {
		if old, found := entries[keyOf(sources[i])]; found && sources[i].IsPending() {
			sources[i].RegistryKindStatus = old
		}
	}
	return sources
}

// limitSources leaves out sources beyond the limit of a status. Sources with problems stay.
func limitSources(sources []Source) []Source {
	if len(sources) <= maxStatusKinds {
		return sources
	}
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b Source) int { return cmp.Compare(rank(a), rank(b)) })
	return sources[:maxStatusKinds]
}

func rank(s Source) int {
	if s.HasProblem() {
		return 0
	}
	return 1
}

func groupByCluster(sources []Source) []searchv1alpha1.RegistryClusterStatus {
	sources = slices.Clone(sources)
	slices.SortStableFunc(sources, func(a, b Source) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind))
	})
	var clusters []searchv1alpha1.RegistryClusterStatus
	for _, source := range sources {
		if len(clusters) == 0 || clusters[len(clusters)-1].Name != source.Cluster {
			clusters = append(clusters, searchv1alpha1.RegistryClusterStatus{Name: source.Cluster})
		}
		last := &clusters[len(clusters)-1]
		last.Kinds = append(last.Kinds, source.RegistryKindStatus)
	}
	return clusters
}

// cachedCondition returns the condition Cached, without generation and time. A kind that only some of
// the clusters serve is no problem.
func cachedCondition(sources []Source) metav1.Condition {
	condition := metav1.Condition{Type: searchv1alpha1.RegistryConditionCached, Status: metav1.ConditionFalse}
	wrong, pending := map[string]string{}, map[string]string{}
	served := servedKinds(sources)
	isUnserved := false
	for _, s := range sources {
		name := kindName(s)
		switch {
		case s.IsPending():
			pending[s.Cluster] = joinCauses(pending[s.Cluster], name+" is being listed")
		case s.State == searchv1alpha1.RegistryKindNotServed && !served[name]:
			isUnserved = true
			wrong[s.Cluster] = joinCauses(wrong[s.Cluster], name+": "+s.Message)
		case s.HasProblem() && s.State != searchv1alpha1.RegistryKindNotServed:
			wrong[s.Cluster] = joinCauses(wrong[s.Cluster], fmt.Sprintf("%s is %s: %s", name, strings.ToLower(string(s.State)), s.Message))
		}
	}
	switch {
	case len(sources) == 0:
		condition.Reason = searchv1alpha1.RegistryReasonNoCluster
		condition.Message = "no cluster is selected: check spec.targetCluster"
	case len(wrong) > 0:
		condition.Reason = searchv1alpha1.RegistryReasonIncomplete
		if isUnserved && !hasOtherProblem(sources) {
			condition.Reason = searchv1alpha1.RegistryReasonNotServed
		}
		condition.Message = conditions.EnumerateCauses("not all objects are cached: ", wrong)
	case len(pending) > 0:
		condition.Reason = searchv1alpha1.RegistryReasonListing
		condition.Message = conditions.EnumerateCauses("objects are being listed: ", pending)
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, searchv1alpha1.RegistryReasonComplete
		condition.Message = "the objects of all selected kinds are cached"
	}
	return condition
}

// servedKinds returns the kinds that at least one cluster serves.
func servedKinds(sources []Source) map[string]bool {
	served := map[string]bool{}
	for _, s := range sources {
		if s.State != searchv1alpha1.RegistryKindNotServed {
			served[kindName(s)] = true
		}
	}
	return served
}

func hasOtherProblem(sources []Source) bool {
	return slices.ContainsFunc(sources, func(s Source) bool {
		return s.HasProblem() && s.State != searchv1alpha1.RegistryKindNotServed
	})
}

func kindName(s Source) string { return s.Kind + "." + s.APIVersion }

func joinCauses(text, cause string) string {
	if text == "" {
		return cause
	}
	return text + ", " + cause
}

// Difference is how much two statuses differ.
type Difference int

// The differences of statuses, by urgency.
const (
	// Same means that nothing differs.
	Same Difference = iota
	// SmallCounts means that only counts differ, by at most a tenth or by fewer than ten objects.
	SmallCounts
	// LargeCounts means that only counts differ, by more than a tenth and at least ten objects.
	LargeCounts
	// States means that more than counts differs.
	States
)

// Compare returns how much two statuses differ. The memory of objects does not count, because it depends on
// the order in which objects were compressed.
func Compare(stored, next searchv1alpha1.ResourceRegistryStatus) Difference {
	if !equality.Semantic.DeepEqual(withoutCounts(stored), withoutCounts(next)) {
		return States
	}
	difference := Same
	for i := range stored.Clusters {
		for j := range stored.Clusters[i].Kinds {
			old, current := stored.Clusters[i].Kinds[j], next.Clusters[i].Kinds[j]
			difference = max(difference, compareCounts(old.Objects, current.Objects))
		}
	}
	return difference
}

func compareCounts(old, current int64) Difference {
	switch {
	case old == current:
		return Same
	case math.Abs(float64(current-old)) <= countTolerance*float64(old), max(current-old, old-current) < minLargeCount:
		return SmallCounts
	}
	return LargeCounts
}

// Entries returns the number of kinds of clusters in a status.
func Entries(status searchv1alpha1.ResourceRegistryStatus) int {
	entries := 0
	for _, cluster := range status.Clusters {
		entries += len(cluster.Kinds)
	}
	return entries
}

func withoutCounts(status searchv1alpha1.ResourceRegistryStatus) searchv1alpha1.ResourceRegistryStatus {
	status = *status.DeepCopy()
	for i := range status.Clusters {
		for j := range status.Clusters[i].Kinds {
			status.Clusters[i].Kinds[j].Objects, status.Clusters[i].Kinds[j].Bytes = 0, 0
		}
	}
	return status
}
