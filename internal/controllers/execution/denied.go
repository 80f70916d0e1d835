package execution

import (
	"errors"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// denialPause is when a Work is looked at again whose objects cannot be watched. It is
// looked at sooner when the member lets the kind be watched; this is for the kind that
// is not watched any more.
const denialPause = 10 * time.Minute

// reportDenials says which objects of a Work cannot be watched in the member for lack
// of a right, and that all can be again.
func (c *controller) reportDenials(cluster *clusterv1alpha1.Cluster, d *delivery) {
	var denials []error
	for _, raw := range d.of.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			continue
		}
		if denial := d.target.Denial(manifest.GroupVersionKind()); denial != nil {
			denials = append(denials, denial)
		}
	}
	present := conditions.Get(c.reports.Current(d.of).Status.Conditions, workv1alpha1.WorkStatusCollected)
	if len(denials) == 0 && present == nil {
		return
	}
	if len(denials) > 0 {
		d.again = sooner(d.again, denialPause)
	}
	c.report(d.of, report.Soon, work.StatusCollected(d.of, work.ExplainForbidden(denials, cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation])))
}

// failuresThatHold are the failures that keep a Work in deletion,
// with the missing right of each. A cluster that leaves is not held by objects that
// Karmada may not read or delete there: they stay in it.
func failuresThatHold(cluster *clusterv1alpha1.Cluster, failures []error) []error {
	var held []error
	for _, failure := range work.ExplainForbidden(failures, cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation]) {
		var forbidden *work.ForbiddenError
		if cluster.DeletionTimestamp == nil || !errors.As(failure, &forbidden) {
			held = append(held, failure)
		}
	}
	return held
}
