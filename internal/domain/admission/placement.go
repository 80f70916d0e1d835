package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func (r *report) validatePlacement(path *field.Path, placement *policyv1alpha1.Placement) {
	if placement.ClusterAffinity != nil && len(placement.ClusterAffinities) > 0 {
		r.addErrors(field.Invalid(path.Child("clusterAffinities"), len(placement.ClusterAffinities),
			"clusterAffinity and clusterAffinities exclude each other; make the first one an entry of the second"))
	}
	r.validateClusterAffinity(path.Child("clusterAffinity"), placement.ClusterAffinity)
	r.validateAffinityTerms(path.Child("clusterAffinities"), placement)
	for i := range placement.ClusterTolerations {
		r.validateToleration(path.Child("clusterTolerations").Index(i), &placement.ClusterTolerations[i])
	}
	r.validateSpreadConstraints(path.Child("spreadConstraints"), placement.SpreadConstraints)
	r.validateReplicaScheduling(path.Child("replicaScheduling"), placement.ReplicaScheduling)
	r.validateWorkloadAffinity(path.Child("workloadAffinity"), placement.WorkloadAffinity)
	r.warnIneffectivePlacement(path, placement)
}

// validateClusterAffinity validates the cluster affinity of a policy of any kind.
func (r *report) validateClusterAffinity(path *field.Path, affinity *policyv1alpha1.ClusterAffinity) {
	if affinity == nil {
		return
	}
	r.warnInvalidLabelSelector(path.Child("labelSelector"), affinity.LabelSelector)
	r.warnIneffectiveAffinity(path, affinity)
	if affinity.FieldSelector == nil {
		return
	}
	for i, requirement := range affinity.FieldSelector.MatchExpressions {
		itemPath := path.Child("fieldSelector", "matchExpressions").Index(i)
		switch requirement.Key {
		case policyv1alpha1.ClusterFieldProvider, policyv1alpha1.ClusterFieldRegion, policyv1alpha1.ClusterFieldZone:
		default:
			r.addErrors(field.NotSupported(itemPath.Child("key"), requirement.Key, []string{
				policyv1alpha1.ClusterFieldProvider, policyv1alpha1.ClusterFieldRegion, policyv1alpha1.ClusterFieldZone}))
		}
		switch requirement.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		default:
			r.addErrors(field.NotSupported(itemPath.Child("operator"), requirement.Operator, []corev1.NodeSelectorOperator{
				corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}))
		}
	}
}

func (r *report) validateAffinityTerms(path *field.Path, placement *policyv1alpha1.Placement) {
	names := uniqueValues[string]{}
	for i := range placement.ClusterAffinities {
		term, itemPath := &placement.ClusterAffinities[i], path.Index(i)
		r.validateLabelKey(itemPath.Child("affinityName"), term.AffinityName)
		names.add(r, itemPath.Child("affinityName"), term.AffinityName)
		r.validateClusterAffinity(itemPath, &term.ClusterAffinity)
		if len(term.OverflowAffinities) > 0 {
			r.validateOverflow(itemPath, term, placement.ReplicaScheduling)
		}
	}
}

// validateOverflow validates that replicas can overflow: the affinity must not select all clusters, and
// replicas must be divided by available capacity.
func (r *report) validateOverflow(path *field.Path, term *policyv1alpha1.ClusterAffinityTerm,
	strategy *policyv1alpha1.ReplicaSchedulingStrategy) {
	itemPath := path.Child("overflowAffinities")
	if !isDividedByCapacity(strategy) {
		r.addErrors(field.Forbidden(itemPath, "only with Divided replicas that are Aggregated, or Weighted with a dynamicWeight"))
	}
	if isEmptyAffinity(&term.ClusterAffinity) {
		r.addErrors(field.Forbidden(itemPath, "the affinity itself selects all clusters, so replicas cannot overflow"))
	}
	names := uniqueValues[string]{term.AffinityName: true}
	for i := range term.OverflowAffinities {
		overflow := &term.OverflowAffinities[i]
		r.validateLabelKey(itemPath.Index(i).Child("affinityName"), overflow.AffinityName)
		names.add(r, itemPath.Index(i).Child("affinityName"), overflow.AffinityName)
		r.validateClusterAffinity(itemPath.Index(i), &overflow.ClusterAffinity)
	}
}

func isDividedByCapacity(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if strategy == nil || strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided {
		return false
	}
	switch strategy.ReplicaDivisionPreference {
	case policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		return true
	case policyv1alpha1.ReplicaDivisionPreferenceWeighted:
		return strategy.WeightPreference != nil && strategy.WeightPreference.DynamicWeight != ""
	}
	return false
}

func isEmptyAffinity(affinity *policyv1alpha1.ClusterAffinity) bool {
	return affinity.LabelSelector == nil && affinity.FieldSelector == nil &&
		len(affinity.ClusterNames) == 0 && len(affinity.ExcludeClusters) == 0
}

// validateToleration rejects operators that compare numbers, because the scheduler does not support
// them for cluster taints.
func (r *report) validateToleration(path *field.Path, toleration *corev1.Toleration) {
	switch toleration.Operator {
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		r.addErrors(field.NotSupported(path.Child("operator"), toleration.Operator, []corev1.TolerationOperator{
			corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	r.warnIneffectiveToleration(path, toleration)
}

func (r *report) validateSpreadConstraints(path *field.Path, constraints []policyv1alpha1.SpreadConstraint) {
	fields := uniqueValues[policyv1alpha1.SpreadFieldValue]{}
	for i := range constraints {
		constraint, itemPath := &constraints[i], path.Index(i)
		r.validateGroupLimits(itemPath, constraint)
		if constraint.SpreadByField != "" {
			fields.add(r, itemPath.Child("spreadByField"), constraint.SpreadByField)
		}
		if constraint.SpreadByLabel != "" && constraint.SpreadByField != "" {
			r.addErrors(field.Invalid(itemPath.Child("spreadByLabel"), constraint.SpreadByLabel,
				"spreadByField and spreadByLabel exclude each other; leave out spreadByLabel"))
		}
	}
	if len(fields) > 0 && !fields[policyv1alpha1.SpreadByFieldCluster] {
		r.addErrors(field.Invalid(path, len(constraints), "spreading by a field needs a constraint with spreadByField cluster as well"))
	}
}

func (r *report) validateGroupLimits(path *field.Path, constraint *policyv1alpha1.SpreadConstraint) {
	if constraint.MinGroups < 0 {
		r.addErrors(field.Invalid(path.Child("minGroups"), constraint.MinGroups, "must not be negative"))
	}
	if constraint.MaxGroups < 0 {
		r.addErrors(field.Invalid(path.Child("maxGroups"), constraint.MaxGroups, "must not be negative"))
	}
	if constraint.MaxGroups > 0 && constraint.MaxGroups < constraint.MinGroups {
		r.addErrors(field.Invalid(path.Child("maxGroups"), constraint.MaxGroups, "must not be less than minGroups"))
	}
}

func (r *report) validateReplicaScheduling(path *field.Path, strategy *policyv1alpha1.ReplicaSchedulingStrategy) {
	if strategy == nil || strategy.WeightPreference == nil {
		return
	}
	for i := range strategy.WeightPreference.StaticWeightList {
		r.validateClusterAffinity(path.Child("weightPreference", "staticWeightList").Index(i).Child("targetCluster"),
			&strategy.WeightPreference.StaticWeightList[i].TargetCluster)
	}
}

func (r *report) validateWorkloadAffinity(path *field.Path, affinity *policyv1alpha1.WorkloadAffinity) {
	if affinity == nil {
		return
	}
	keys := uniqueValues[string]{}
	if term := affinity.Affinity; term != nil {
		r.validateLabelKey(path.Child("affinity", "groupByLabelKey"), term.GroupByLabelKey)
		keys.add(r, path.Child("affinity", "groupByLabelKey"), term.GroupByLabelKey)
	}
	if term := affinity.AntiAffinity; term != nil {
		r.validateLabelKey(path.Child("antiAffinity", "groupByLabelKey"), term.GroupByLabelKey)
		keys.add(r, path.Child("antiAffinity", "groupByLabelKey"), term.GroupByLabelKey)
	}
}

// warnInvalidLabelSelector warns about an invalid selector, which selects nothing. Such a selector is
// not rejected, because upstream accepts it.
func (r *report) warnInvalidLabelSelector(path *field.Path, selector *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		r.addWarning(path, "selects nothing: %v", err)
	}
}
