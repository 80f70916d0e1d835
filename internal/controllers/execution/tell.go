package execution

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
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
		c.failed(of, workv1alpha1.EventReasonSyncFailed, errors.Join(failures...))
		return
	}
	c.recovered(of, workv1alpha1.EventReasonSyncFailed)
	if conditions.Is(c.reports.Current(of).Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse) {
		c.events.Decided(of, workv1alpha1.EventReasonSyncSucceed, "Applied to cluster %s after it had failed", cluster)
	}
	c.events.Succeeded(of, workv1alpha1.EventReasonSyncSucceed, "Applied to cluster %s", cluster)
}

// failed tells of a failure on a Work and on the templates that it was made of.
// The failure names the cluster.
func (c *controller) failed(of *workv1alpha1.Work, reason string, err error) {
	c.events.Failed(of, reason, err)
	if c.options.Mode == clusterv1alpha1.Pull {
		// An agent writes no Events in the namespaces of users. The binding says what failed.
		return
	}
	cluster, _ := work.ClusterOf(of.Namespace)
	eachTemplate(of, func(template *unstructured.Unstructured) { c.events.FailedIn(cluster, template, reason, err) })
}

// recovered forgets a failure on the same objects.
func (c *controller) recovered(of *workv1alpha1.Work, reason string) {
	if !c.events.Recovered(of, reason) || c.options.Mode == clusterv1alpha1.Pull {
		return
	}
	cluster, _ := work.ClusterOf(of.Namespace)
	eachTemplate(of, func(template *unstructured.Unstructured) { c.events.RecoveredIn(cluster, template, reason) })
}

// eachTemplate visits the templates that a Work was made of.
func eachTemplate(of *workv1alpha1.Work, visit func(template *unstructured.Unstructured)) {
	for _, raw := range of.Spec.Workload.Manifests {
		manifest, decodeErr := work.Decode(raw)
		if decodeErr != nil {
			continue
		}
		if template := templateOf(manifest); template != nil {
			visit(template)
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
		c.recovered(d.of, workv1alpha1.EventReasonDriftContested)
		if conditions.Is(c.reports.Current(d.of).Status.Conditions, workv1alpha1.WorkDriftContested, metav1.ConditionTrue) {
			c.report(d.of, report.Soon, work.Contested(d.of, nil))
		}
		return
	}
	contested := work.Contested(d.of, d.contests)
	c.report(d.of, report.Now, contested)
	c.failed(d.of, workv1alpha1.EventReasonDriftContested, errors.New(contested.Message))
}
