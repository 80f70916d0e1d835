// Package rebalance decides which workloads of a WorkloadRebalancer the scheduler must place afresh, and
// reports the results.
//
// Invariants: each result in the status is final unless a user removes the workload from the spec and adds it
// again. The trigger time of a workload depends only on the stored rebalancer, so a pass that is repeated
// after a crash triggers no second scheduling.
package rebalance

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

// Workload identifies a listed workload.
type Workload = appsv1alpha1.ObjectReference

// Observe returns the new status.observedWorkloads: one entry for each workload of the spec, with its stored
// result, and the entries of rebalanced workloads that are no longer in the spec. Workloads without a result
// are new, still pending, or were removed from the spec and added again. The entries are sorted by
// apiVersion, kind, namespace and name.
func Observe(rebalancer *appsv1alpha1.WorkloadRebalancer) []appsv1alpha1.ObservedWorkload {
	entries := make(map[Workload]appsv1alpha1.ObservedWorkload, len(rebalancer.Spec.Workloads))
	for _, workload := range rebalancer.Spec.Workloads {
		entries[workload] = appsv1alpha1.ObservedWorkload{Workload: workload}
	}
	removed := readRemoved(rebalancer)
	for _, stored := range rebalancer.Status.ObservedWorkloads {
		_, isListed := entries[stored.Workload]
		if isListed && !removed[stored.Workload] || !isListed && stored.Result == appsv1alpha1.RebalanceSuccessful {
			entries[stored.Workload] = stored
		}
	}
	observed := make([]appsv1alpha1.ObservedWorkload, 0, len(entries))
	for _, entry := range entries {
		observed = append(observed, entry)
	}
	slices.SortFunc(observed, func(a, b appsv1alpha1.ObservedWorkload) int { return compareWorkloads(a.Workload, b.Workload) })
	return observed
}

func compareWorkloads(a, b Workload) int {
	return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// NextBatch returns the indexes of up to size pending workloads that follow the given workload, and whether
// no pending workload follows them. Passes that continue after the last workload of the previous batch reach
// every workload, even if some fail in each pass.
func NextBatch(observed []appsv1alpha1.ObservedWorkload, after Workload, size int) (batch []int, isLast bool) {
	for i := range observed {
		if observed[i].Result != "" || compareWorkloads(observed[i].Workload, after) <= 0 {
			continue
		}
		if len(batch) == size {
			return batch, false
		}
		batch = append(batch, i)
	}
	return batch, true
}

// IsPending reports whether a workload has no result yet.
func IsPending(observed []appsv1alpha1.ObservedWorkload) bool {
	return slices.ContainsFunc(observed, func(entry appsv1alpha1.ObservedWorkload) bool { return entry.Result == "" })
}

// NewStatus returns the status with the given entries. The rebalancer finishes at the given time if this
// status is the first one for the spec in which every workload has a result.
func NewStatus(rebalancer *appsv1alpha1.WorkloadRebalancer, observed []appsv1alpha1.ObservedWorkload,
	now time.Time) appsv1alpha1.WorkloadRebalancerStatus {
	stored := &rebalancer.Status
	next := appsv1alpha1.WorkloadRebalancerStatus{ObservedWorkloads: observed, ObservedGeneration: rebalancer.Generation}
	switch {
	case IsPending(observed):
	case stored.FinishTime != nil && stored.ObservedGeneration == next.ObservedGeneration &&
		equality.Semantic.DeepEqual(stored.ObservedWorkloads, observed):
		next.FinishTime = stored.FinishTime
	default:
		next.FinishTime = new(metav1.NewTime(now).Rfc3339Copy()) // as the API server stores it
	}
	return next
}

// DeletionTime returns the time at which the rebalancer must be deleted, or false if it is not finished or is
// kept for ever.
func DeletionTime(rebalancer *appsv1alpha1.WorkloadRebalancer) (at time.Time, isSet bool) {
	status, ttl := &rebalancer.Status, rebalancer.Spec.TTLSecondsAfterFinished
	if ttl == nil || status.FinishTime == nil || status.ObservedGeneration != rebalancer.Generation {
		return time.Time{}, false
	}
	return status.FinishTime.Add(time.Duration(*ttl) * time.Second), true
}

// TriggerTime returns the time of the reschedule request: the creation time, or the later time at which a user
// changed spec.workloads. The API server stores the time of the change in metadata.managedFields. If that
// is missing, the creation time is returned, so that no time changes between two passes.
func TriggerTime(rebalancer *appsv1alpha1.WorkloadRebalancer) metav1.Time {
	latest := rebalancer.CreationTimestamp
	if rebalancer.Generation <= 1 {
		return latest
	}
	for i := range rebalancer.ManagedFields {
		entry := &rebalancer.ManagedFields[i]
		if entry.Subresource == "" && entry.Time != nil && ownsWorkloads(entry) && latest.Before(entry.Time) {
			latest = *entry.Time
		}
	}
	return latest
}

// ownsWorkloads reports whether the field manager wrote the current spec.workloads. Managers of labels and
// annotations do not own it, and a list has no second owner unless both wrote the same list.
func ownsWorkloads(entry *metav1.ManagedFieldsEntry) bool {
	return entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:workloads"`)
}

// maxRemovedWorkloads limits the size of RemovedWorkloadsAnnotation.
const maxRemovedWorkloads = 500

// RecordRemoved records the workloads of the status that are not in the spec in RemovedWorkloadsAnnotation. If
// there are more than maxRemovedWorkloads, the others are not rebalanced again when they return to the spec.
func RecordRemoved(rebalancer *appsv1alpha1.WorkloadRebalancer) {
	listed := make(map[Workload]bool, len(rebalancer.Spec.Workloads))
	for _, workload := range rebalancer.Spec.Workloads {
		listed[workload] = true
	}
	var removed []Workload
	for _, entry := range rebalancer.Status.ObservedWorkloads {
		if !listed[entry.Workload] && len(removed) < maxRemovedWorkloads {
			removed = append(removed, entry.Workload)
		}
	}
	binding.SetJSONAnnotation(rebalancer, appsv1alpha1.RemovedWorkloadsAnnotation, removed, len(removed) == 0)
}

// readRemoved returns the workloads that RecordRemoved recorded. An invalid record is empty.
func readRemoved(rebalancer *appsv1alpha1.WorkloadRebalancer) map[Workload]bool {
	var list []Workload
	text := rebalancer.Annotations[appsv1alpha1.RemovedWorkloadsAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	removed := make(map[Workload]bool, len(list))
	for _, workload := range list {
		removed[workload] = true
	}
	return removed
}
