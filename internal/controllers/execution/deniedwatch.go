package execution

import (
	"errors"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// deniedWatchRecheck is the delay before the next pass of a Work whose objects cannot be watched.
// Normally a pass starts earlier, when the member allows the watch. The delay is needed for a kind
// that is no longer watched.
const deniedWatchRecheck = 10 * time.Minute

// reportDeniedWatches sets a condition that lists the objects of a Work that cannot be watched in
// the member because a permission is missing. It updates the condition when all objects can be
// watched again.
func (c *controller) reportDeniedWatches(cluster *clusterv1alpha1.Cluster, d *delivery) {
	var denials []error
	for _, kind := range d.kinds {
		if denial := d.member.WatchDenial(kind); denial != nil {
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
	c.reportConditions(d.work, loop.StatusSettled,
		work.StatusCollectedCondition(d.work, work.ExplainForbidden(denials, cluster.Annotations[clusterv1alpha1.MemberRoleAnnotation])))
}

// blockingFailures returns the failures that block the deletion of a Work. If a failure is caused
// by a missing permission in the member, blockingFailures adds that permission to it. A missing
// permission does not block the removal of a cluster: objects that Karmada may not read or delete
// are then kept in the member.
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
