package workstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// reportCuts says which statuses of a Work were reflected in part. The condition stays
// until all objects were seen and no status was cut.
func reportCuts(of *workv1alpha1.Work, seen []reflection, status *workv1alpha1.WorkStatus, now metav1.Time) {
	var cuts []string
	for _, one := range seen {
		if one.cut != "" {
			cuts = append(cuts, one.cut)
		}
	}
	switch {
	case len(cuts) > 0:
		condition := work.StatusCutCondition(of, cuts)
		condition.LastTransitionTime = now
		conditions.Set(&status.Conditions, condition)
	case len(seen) == len(of.Spec.Workload.Manifests):
		conditions.Remove(&status.Conditions, workv1alpha1.WorkStatusCut)
	}
}
