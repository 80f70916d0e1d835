package binding

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// allClusters in the record of a dependent means all clusters of its snapshot in spec.requiredBy.
const allClusters = "*"

// IsDispatchSuspended reports whether the dispatching of changes to a cluster is suspended, either
// by the binding itself or because a dependent that requires the binding in the cluster is
// suspended there.
func IsDispatchSuspended(bound Object, cluster string) bool {
	if own := bound.BindingSpec().Suspension; own != nil && suspends(&own.Suspension, cluster) {
		return true
	}
	return len(SuspendedDependents(bound, cluster)) > 0
}

// suspends reports whether a suspension applies to a cluster, either to all clusters or to this
// cluster by name.
func suspends(suspension *policyv1alpha1.Suspension, cluster string) bool {
	if suspension.Dispatching != nil && *suspension.Dispatching {
		return true
	}
	return suspension.DispatchingOnClusters != nil &&
		slices.Contains(suspension.DispatchingOnClusters.ClusterNames, cluster)
}

// SuspendedDependents returns the dependents that require the binding in a cluster and are
// suspended there, as namespace/name in the order of spec.requiredBy.
func SuspendedDependents(bound Object, cluster string) []string {
	record := readSuspendedDependents(bound)
	if len(record) == 0 {
		return nil
	}
	var suspended []string
	for _, snapshot := range bound.BindingSpec().RequiredBy {
		dependent := types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}.String()
		clusters := record[dependent]
		isSuspended := slices.Contains(clusters, allClusters) || slices.Contains(clusters, cluster)
		if isSuspended && slices.ContainsFunc(snapshot.Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster }) {
			suspended = append(suspended, dependent)
		}
	}
	return suspended
}

// HasSuspendedDependents reports whether the binding records that a dependent is suspended in any
// cluster.
func HasSuspendedDependents(bound Object) bool {
	return bound.GetAnnotations()[workv1alpha2.SuspendedByDependentsAnnotation] != ""
}

// HaveSuspendedDependentsChanged reports whether two versions of a binding record different
// suspensions of dependents. Such a change does not change the generation of the binding.
func HaveSuspendedDependentsChanged(before, after Object) bool {
	const key = workv1alpha2.SuspendedByDependentsAnnotation
	return before.GetAnnotations()[key] != after.GetAnnotations()[key]
}

// RecordSuspendedDependent records in workv1alpha2.SuspendedByDependentsAnnotation the clusters of
// spec.requiredBy in which a dependent is suspended. isSuspended reports this for one cluster. The
// writer of spec.requiredBy calls it in the same write.
func RecordSuspendedDependent(bound Object, dependent types.NamespacedName, isSuspended func(cluster string) bool) {
	var required, suspended []string
	for _, snapshot := range bound.BindingSpec().RequiredBy {
		if (types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}) != dependent {
			continue
		}
		for _, target := range snapshot.Clusters {
			required = append(required, target.Name)
			if isSuspended(target.Name) {
				suspended = append(suspended, target.Name)
			}
		}
	}
	record := readSuspendedDependents(bound)
	switch {
	case len(suspended) == 0:
		delete(record, dependent.String())
	case len(suspended) == len(required):
		// The short form keeps the annotation small if the dispatching to all clusters is suspended.
		record[dependent.String()] = []string{allClusters}
	default:
		slices.Sort(suspended)
		record[dependent.String()] = slices.Compact(suspended)
	}
	writeSuspendedDependents(bound, record)
}

// readSuspendedDependents returns the clusters in which dependents are suspended, by dependent. An
// invalid record is empty: the dependencies controller replaces it.
func readSuspendedDependents(bound Object) map[string][]string {
	record := map[string][]string{}
	text := bound.GetAnnotations()[workv1alpha2.SuspendedByDependentsAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &record) != nil || record == nil {
		return map[string][]string{}
	}
	return record
}

func writeSuspendedDependents(bound Object, record map[string][]string) {
	const key = workv1alpha2.SuspendedByDependentsAnnotation
	stored, isStored := bound.GetAnnotations()[key]
	text, _ := json.Marshal(record) // a map of strings can always be encoded
	if len(record) == 0 && !isStored || len(record) > 0 && stored == string(text) {
		return
	}
	annotations := maps.Clone(bound.GetAnnotations())
	delete(annotations, key)
	if len(record) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = string(text)
	}
	bound.SetAnnotations(annotations)
}
