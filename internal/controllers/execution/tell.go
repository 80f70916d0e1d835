package execution

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
)

// tell tells of failures, and of the success that ends them. A success that was
// expected is seen in the conditions.
func (c *controller) tell(of *workv1alpha1.Work, failures []error) {
	cluster, _ := work.ClusterOf(of.Namespace)
	if len(failures) > 0 {
		c.events.Failed(of, workv1alpha1.EventReasonSyncFailed, errors.Join(failures...))
		c.tellTemplates(of, workv1alpha1.EventReasonSyncFailed, fmt.Errorf("cluster %s: %w", cluster, errors.Join(failures...)))
		return
	}
	c.events.Recovered(of, workv1alpha1.EventReasonSyncFailed)
	if conditions.Is(c.reports.Current(of).Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse) {
		c.events.Decided(of, workv1alpha1.EventReasonSyncSucceed, "Applied to cluster %s after it had failed", cluster)
	}
}

// tellTemplates tells of a failure on the templates that a Work was made of.
func (c *controller) tellTemplates(of *workv1alpha1.Work, reason string, err error) {
	for _, raw := range of.Spec.Workload.Manifests {
		manifest, decodeErr := work.Decode(raw)
		if decodeErr != nil {
			continue
		}
		if template := templateOf(manifest); template != nil {
			c.events.Failed(template, reason, err)
		}
	}
}

// tellDispatching tells that a user has stopped the delivery, or lets it go on.
// That it goes on from the beginning is no news.
func (c *controller) tellDispatching(of *workv1alpha1.Work) {
	wanted := work.Dispatching(of)
	present := conditions.Get(c.reports.Current(of).Status.Conditions, wanted.Type)
	if present == nil && wanted.Status == metav1.ConditionTrue || present != nil && present.Status == wanted.Status {
		return
	}
	if c.applied.news(of, string(wanted.Status)) {
		c.events.Decided(of, workv1alpha1.EventReasonWorkDispatching, "%s", wanted.Message)
	}
}

// tellContests reports who undoes repairs, and that nobody does any more.
func (c *controller) tellContests(d *delivery) {
	if len(d.contests) == 0 {
		c.events.Recovered(d.of, workv1alpha1.EventReasonDriftContested)
		if conditions.Is(c.reports.Current(d.of).Status.Conditions, workv1alpha1.WorkDriftContested, metav1.ConditionTrue) {
			c.report(d.of, report.Soon, work.Contested(d.of, nil))
		}
		return
	}
	contested := work.Contested(d.of, d.contests)
	c.report(d.of, report.Now, contested)
	c.events.Failed(d.of, workv1alpha1.EventReasonDriftContested, errors.New(contested.Message))
	c.tellTemplates(d.of, workv1alpha1.EventReasonDriftContested, errors.New(contested.Message))
}
