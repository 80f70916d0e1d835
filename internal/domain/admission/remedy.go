package admission

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
)

// warnIneffectiveRemedy warns about fields with which a Remedy never acts. Upstream accepts every
// Remedy, so no field is an error.
func (r *report) warnIneffectiveRemedy(remedy *remedyv1alpha1.Remedy) {
	if len(remedy.Spec.Actions) == 0 {
		r.addWarning(specPath().Child("actions"), "is empty, so the Remedy has no effect: add an action, such as %s", remedyv1alpha1.TrafficControl)
	}
	if affinity := remedy.Spec.ClusterAffinity; affinity != nil {
		path := specPath().Child("clusterAffinity", "clusterNames")
		if len(affinity.ClusterNames) == 0 {
			r.addWarning(path, "is empty, so the Remedy selects no cluster: omit clusterAffinity to select all clusters")
		}
		r.warnUnknownClusters(path, affinity.ClusterNames)
		for i, name := range affinity.ClusterNames {
			if !isValidClusterName(name) {
				r.addWarning(path.Index(i), "selects nothing: no cluster can be named %q", name)
			}
		}
	}
	path := specPath().Child("decisionMatches")
	if remedy.Spec.DecisionMatches != nil && len(remedy.Spec.DecisionMatches) == 0 {
		r.addWarning(path, "is an empty list, which matches no cluster: omit it to match always")
	}
	for i, match := range remedy.Spec.DecisionMatches {
		r.warnIneffectiveMatch(path.Index(i).Child("clusterConditionMatch"), match.ClusterConditionMatch)
	}
}

func (r *report) warnIneffectiveMatch(path *field.Path, match *remedyv1alpha1.ClusterConditionRequirement) {
	operators := []remedyv1alpha1.ClusterConditionOperator{remedyv1alpha1.ClusterConditionEqual, remedyv1alpha1.ClusterConditionNotEqual}
	statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	switch {
	case match == nil:
		r.addWarning(path, "is missing, so the entry matches no cluster")
	case !slices.Contains(operators, match.Operator):
		r.addWarning(path.Child("operator"), "%q matches no cluster; use Equal or NotEqual", match.Operator)
	case !slices.Contains(statuses, match.ConditionStatus):
		r.addWarning(path.Child("conditionStatus"), "no condition has the status %q; use True, False or Unknown", match.ConditionStatus)
	}
}
