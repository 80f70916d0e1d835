package diagnose

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/podfailure"
	"karmada.io/karmada/internal/domain/work"
)

// diagnoseStatus checks that the member reports a healthy status.
func (c *clusterFacts) diagnoseStatus() Link {
	link := Link{Stage: StageStatus, Cluster: c.name, Result: NotApplicable}
	if c.work == nil || !c.item.Applied {
		link.Reason, link.Message = ReasonNoStatus, "the current version is not applied, so its status is unknown"
		return link
	}
	collected := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkStatusCollected)
	interpreted := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkStatusInterpreted)
	ready := describeReady(c.item.Status)
	switch {
	case collected != nil && collected.Status == metav1.ConditionFalse:
		link.Result, link.Reason, link.Message = Failed, collected.Reason, collected.Message
		link.Remedy = fmt.Sprintf("grant Karmada the permission that the message names in cluster %s", c.name)
	case interpreted != nil && interpreted.Status == metav1.ConditionFalse:
		link.Result, link.Reason, link.Message, link.Remedy = Failed, interpreted.Reason, interpreted.Message, interpreterRemedy
	case c.member != nil && !cluster.IsReady(c.member):
		link.Result, link.Reason = Failed, ReasonStatusOutdated
		link.Message = "the status is old: " + describeNotReady(c.member)
		link.Remedy = "kubectl describe cluster " + c.name
	case len(c.work.Status.ManifestStatuses) == 0:
		link.Result, link.Reason = Pending, ReasonStatusNotReported
		link.Message = "cluster " + c.name + " has not reported a status yet"
		link.Remedy = "check that karmada-controller-manager runs, or karmada-agent in pull mode; kubectl describe " + kubectlWork(c.work)
	case c.item.Health == workv1alpha2.ResourceUnhealthy:
		return c.explainUnhealthy(link, ready)
	case c.item.Health == workv1alpha2.ResourceHealthy:
		link.Result, link.Reason, link.Message = OK, ReasonHealthy, "healthy"+ready
	case c.workLink.Result == OK && c.memberLink.Result == OK:
		// A kind without health rules has no health.
		link.Result, link.Reason, link.Message = OK, ReasonNoStatus, "the kind has no health rules"+ready
	default:
		link.Reason, link.Message = ReasonNoStatus, "the health is unknown"+ready
	}
	return link
}

// explainUnhealthy describes why a workload is not healthy. ready is the text about its ready replicas. The Pods in
// the member are the most specific source, then the reflected status, then the object's events. Without a
// cause, the workload may still be starting, so the result is Pending.
func (c *clusterFacts) explainUnhealthy(link Link, ready string) Link {
	link.Result, link.Reason, link.Message = Pending, ReasonUnhealthy, "not healthy"+ready
	link.Remedy = fmt.Sprintf("karmadactl describe %s --operation-scope members --cluster %s", c.kubectlTemplate(), c.name)
	failure, found := podfailure.MostCommon(c.observed.Pods.Value)
	if !found {
		failure, found = podfailure.FromStatus(c.item.Status)
	}
	if !found && c.observed.Object.Value != nil && podfailure.LacksPods(c.observed.Object.Value) {
		failure, found = podfailure.FromEvents(c.observed.Events.Value, time.Time{})
	}
	if found {
		link.Result, link.Reason = Failed, failure.Reason
		link.Message += ": " + failure.Message
	} else if reason := work.UnhealthyReasons([]workv1alpha2.AggregatedStatusItem{c.item})[c.name]; reason != "" {
		link.Result = Failed
		link.Message += ": " + reason
	}
	if link.Reason == podfailure.ImagePullBackOff {
		link.Remedy = "correct the image, or the pull secret in the namespace of the Pods in cluster " + c.name
	}
	if c.observed.Pods.Err != nil {
		link.Message += fmt.Sprintf("; its Pods could not be read: %v", c.observed.Pods.Err)
	}
	return link
}

// describeReady returns the ready replicas in a reflected status, such as ": 2/4 ready". It returns an
// empty string for a status without replicas.
func describeReady(status *runtime.RawExtension) string {
	if status == nil {
		return ""
	}
	var read struct {
		Replicas      *int32 `json:"replicas"`
		ReadyReplicas int32  `json:"readyReplicas"`
	}
	if err := json.Unmarshal(status.Raw, &read); err != nil || read.Replicas == nil {
		return ""
	}
	return fmt.Sprintf(": %d/%d ready", read.ReadyReplicas, *read.Replicas)
}
