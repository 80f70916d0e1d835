package admission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func (r *report) placement(path *field.Path, placement *policyv1alpha1.Placement) {
	if placement.ClusterAffinity != nil && len(placement.ClusterAffinities) > 0 {
		r.add(field.Invalid(path.Child("clusterAffinities"), len(placement.ClusterAffinities),
			"clusterAffinity and clusterAffinities exclude each other; make the first one an entry of the second"))
	}
	r.clusterAffinity(path.Child("clusterAffinity"), placement.ClusterAffinity)
	r.affinityTerms(path.Child("clusterAffinities"), placement)
	for i := range placement.ClusterTolerations {
		r.toleration(path.Child("clusterTolerations").Index(i), &placement.ClusterTolerations[i])
	}
	r.spreadConstraints(path.Child("spreadConstraints"), placement.SpreadConstraints)
	r.replicaScheduling(path.Child("replicaScheduling"), placement.ReplicaScheduling)
	r.workloadAffinity(path.Child("workloadAffinity"), placement.WorkloadAffinity)
	r.ineffectivePlacement(path, placement)
}

// clusterAffinity holds for every selection of clusters, in policies of all
// kinds.
func (r *report) clusterAffinity(path *field.Path, affinity *policyv1alpha1.ClusterAffinity) {
	if affinity == nil {
		return
	}
	r.labelSelector(path.Child("labelSelector"), affinity.LabelSelector)
	r.ineffectiveAffinity(path, affinity)
	if affinity.FieldSelector == nil {
		return
	}
	for i, requirement := range affinity.FieldSelector.MatchExpressions {
		at := path.Child("fieldSelector", "matchExpressions").Index(i)
		switch requirement.Key {
		case policyv1alpha1.ClusterFieldProvider, policyv1alpha1.ClusterFieldRegion, policyv1alpha1.ClusterFieldZone:
		default:
			r.add(field.NotSupported(at.Child("key"), requirement.Key, []string{
				policyv1alpha1.ClusterFieldProvider, policyv1alpha1.ClusterFieldRegion, policyv1alpha1.ClusterFieldZone}))
		}
		switch requirement.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		default:
			r.add(field.NotSupported(at.Child("operator"), requirement.Operator, []corev1.NodeSelectorOperator{
				corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}))
		}
	}
}

func (r *report) affinityTerms(path *field.Path, placement *policyv1alpha1.Placement) {
	names := unique[string]{}
	for i := range placement.ClusterAffinities {
		term, at := &placement.ClusterAffinities[i], path.Index(i)
		r.labelKey(at.Child("affinityName"), term.AffinityName)
		names.see(r, at.Child("affinityName"), term.AffinityName)
		r.clusterAffinity(at, &term.ClusterAffinity)
		if len(term.OverflowAffinities) > 0 {
			r.overflow(at, term, placement.ReplicaScheduling)
		}
	}
}

// overflow makes sure that there is something to flow over: a limited first
// choice, and replicas that are divided by what fits.
func (r *report) overflow(path *field.Path, term *policyv1alpha1.ClusterAffinityTerm, strategy *policyv1alpha1.ReplicaSchedulingStrategy) {
	at := path.Child("overflowAffinities")
	if !dividesByCapacity(strategy) {
		r.add(field.Forbidden(at, "only with Divided replicas that are Aggregated, or Weighted with a dynamicWeight"))
	}
	if isEmptyAffinity(&term.ClusterAffinity) {
		r.add(field.Forbidden(at, "the affinity itself selects all clusters, so that nothing can overflow"))
	}
	names := unique[string]{term.AffinityName: true}
	for i := range term.OverflowAffinities {
		overflow := &term.OverflowAffinities[i]
		r.labelKey(at.Index(i).Child("affinityName"), overflow.AffinityName)
		names.see(r, at.Index(i).Child("affinityName"), overflow.AffinityName)
		r.clusterAffinity(at.Index(i), &overflow.ClusterAffinity)
	}
}

func dividesByCapacity(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
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

// toleration refuses the operators that compare numbers: taints of clusters are
// not compared that way.
func (r *report) toleration(path *field.Path, toleration *corev1.Toleration) {
	switch toleration.Operator {
	case corev1.TolerationOpLt, corev1.TolerationOpGt:
		r.add(field.NotSupported(path.Child("operator"), toleration.Operator, []corev1.TolerationOperator{
			corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	r.ineffectiveToleration(path, toleration)
}

func (r *report) spreadConstraints(path *field.Path, constraints []policyv1alpha1.SpreadConstraint) {
	fields := unique[policyv1alpha1.SpreadFieldValue]{}
	for i := range constraints {
		constraint, at := &constraints[i], path.Index(i)
		r.groups(at, constraint)
		if constraint.SpreadByField != "" {
			fields.see(r, at.Child("spreadByField"), constraint.SpreadByField)
		}
		if constraint.SpreadByLabel != "" && constraint.SpreadByField != "" {
			r.add(field.Invalid(at.Child("spreadByLabel"), constraint.SpreadByLabel,
				"spreadByField and spreadByLabel exclude each other; leave out spreadByLabel"))
		}
	}
	if len(fields) > 0 && !fields[policyv1alpha1.SpreadByFieldCluster] {
		r.add(field.Invalid(path, len(constraints), "spreading by a field needs a constraint with spreadByField cluster as well"))
	}
}

func (r *report) groups(path *field.Path, constraint *policyv1alpha1.SpreadConstraint) {
	if constraint.MinGroups < 0 {
		r.add(field.Invalid(path.Child("minGroups"), constraint.MinGroups, "must not be negative"))
	}
	if constraint.MaxGroups < 0 {
		r.add(field.Invalid(path.Child("maxGroups"), constraint.MaxGroups, "must not be negative"))
	}
	if constraint.MaxGroups > 0 && constraint.MaxGroups < constraint.MinGroups {
		r.add(field.Invalid(path.Child("maxGroups"), constraint.MaxGroups, "must not be less than minGroups"))
	}
}

func (r *report) replicaScheduling(path *field.Path, strategy *policyv1alpha1.ReplicaSchedulingStrategy) {
	if strategy == nil || strategy.WeightPreference == nil {
		return
	}
	for i := range strategy.WeightPreference.StaticWeightList {
		r.clusterAffinity(path.Child("weightPreference", "staticWeightList").Index(i).Child("targetCluster"),
			&strategy.WeightPreference.StaticWeightList[i].TargetCluster)
	}
}

func (r *report) workloadAffinity(path *field.Path, affinity *policyv1alpha1.WorkloadAffinity) {
	if affinity == nil {
		return
	}
	keys := unique[string]{}
	if term := affinity.Affinity; term != nil {
		r.labelKey(path.Child("affinity", "groupByLabelKey"), term.GroupByLabelKey)
		keys.see(r, path.Child("affinity", "groupByLabelKey"), term.GroupByLabelKey)
	}
	if term := affinity.AntiAffinity; term != nil {
		r.labelKey(path.Child("antiAffinity", "groupByLabelKey"), term.GroupByLabelKey)
		keys.see(r, path.Child("antiAffinity", "groupByLabelKey"), term.GroupByLabelKey)
	}
}

// labelSelector warns only: a selector that cannot be understood has always been
// accepted, and selects nothing.
func (r *report) labelSelector(path *field.Path, selector *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		r.warn(path, "selects nothing: %v", err)
	}
}
