package execution

import (
	"errors"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/statuswriter"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// deniedWatchRecheck is the delay of the next pass of a Work whose objects cannot be watched. A
// pass comes earlier when the member allows the watch; this delay is for a kind that is not
// watched any more.
const deniedWatchRecheck = 10 * time.Minute

// reportDeniedWatches reports in a condition which objects of a Work cannot be watched in the
// member because a right is missing, and the end of that.
func (c *controller) reportDeniedWatches(cluster *clusterv1alpha1.Cluster, d *delivery) {
	var denials []error
	for _, raw := range d.work.Spec.Workload.Manifests {
		manifest, err := work.DecodeManifest(raw)
		if err != nil {
			continue
		}
		if denial := d.member.WatchDenial(manifest.GroupVersionKind()); denial != nil {
			denials = append(denials, denial)
		}
	}
	present := conditions.Get(c.reports.Latest(d.work).Status.Conditions, workv1alpha1.WorkStatusCollected)
	if len(denials) == 0 && present == nil {
		return
	}
	if len(denials) > 0 {
		d.requeueAfter = shorterDelay(d.requeueAfter, deniedWatchRecheck)
	}
	c.reportConditions(d.work, statuswriter.Prompt, work.StatusCollectedCondition(d.work, work.ExplainForbidden(denials, cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation])))
}

// blockingFailures returns the failures that block the deletion of a Work, with the missing
// right of each. A missing right does not block the removal of a cluster: objects that Karmada
// may not read or delete stay in the member.
func blockingFailures(cluster *clusterv1alpha1.Cluster, failures []error) []error {
	var blocking []error
	for _, failure := range work.ExplainForbidden(failures, cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation]) {
		var forbidden *work.ForbiddenError
		if cluster.DeletionTimestamp == nil || !errors.As(failure, &forbidden) {
			blocking = append(blocking, failure)
		}
	}
	return blocking
}
