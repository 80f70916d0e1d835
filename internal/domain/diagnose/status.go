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

// checkStatus checks that the member reports a healthy status.
func (c *clusterFacts) checkStatus(delivered, member Link) Link {
	link := Link{Stage: StageStatus, Cluster: c.name, Verdict: NotApplicable}
	if c.work == nil || !c.item.Applied {
		link.Reason, link.Message = ReasonNoStatus, "the current version is not applied, so its status is unknown"
		return link
	}
	collected := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkStatusCollected)
	interpreted := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkStatusInterpreted)
	numbers := describeReady(c.item.Status)
	switch {
	case collected != nil && collected.Status == metav1.ConditionFalse:
		link.Verdict, link.Reason, link.Message = Failed, collected.Reason, collected.Message
		link.Remedy = fmt.Sprintf("grant the right that the message names to Karmada in cluster %s", c.name)
	case interpreted != nil && interpreted.Status == metav1.ConditionFalse:
		link.Verdict, link.Reason, link.Message, link.Remedy = Failed, interpreted.Reason, interpreted.Message, remedyOfInterpreter
	case c.member != nil && !cluster.IsReady(c.member):
		link.Verdict, link.Reason = Failed, ReasonStatusOutdated
		link.Message = "the status is old: " + describeNotReady(c.member)
		link.Remedy = "kubectl describe cluster " + c.name
	case len(c.work.Status.ManifestStatuses) == 0:
		link.Verdict, link.Reason = Pending, ReasonStatusNotReported
		link.Message = "cluster " + c.name + " has not reported a status yet"
		link.Remedy = "check that karmada-controller-manager runs, or karmada-agent in pull mode; kubectl describe " + kubectlWork(c.work)
	case c.item.Health == workv1alpha2.ResourceUnhealthy:
		return c.explainUnhealthy(link, numbers)
	case c.item.Health == workv1alpha2.ResourceHealthy:
		link.Verdict, link.Reason, link.Message = OK, ReasonHealthy, "healthy"+numbers
	case delivered.Verdict == OK && member.Verdict == OK:
		// A kind without health rules has no health.
		link.Verdict, link.Reason, link.Message = OK, ReasonNoStatus, "the kind has no health"+numbers
	default:
		link.Reason, link.Message = ReasonNoStatus, "the health is unknown"+numbers
	}
	return link
}

// explainUnhealthy describes why a workload is not healthy. Without a known cause the workload may
// still be starting, so the verdict is Pending. The Pods of the member are the most
// specific source, then the events of the object, then the reflected status.
func (c *clusterFacts) explainUnhealthy(link Link, numbers string) Link {
	link.Verdict, link.Reason, link.Message = Pending, ReasonUnhealthy, "not healthy"+numbers
	link.Remedy = fmt.Sprintf("karmadactl describe %s --operation-scope members --cluster %s", c.kubectlTemplate(), c.name)
	failure, found := podfailure.MostCommon(c.answers.Pods.Value)
	if !found {
		failure, found = podfailure.FromStatus(c.item.Status)
	}
	if !found && c.lacksPods() {
		failure, found = podfailure.FromEvents(c.answers.Events.Value, time.Time{})
	}
	if found {
		link.Verdict, link.Reason = Failed, failure.Reason
		link.Message += ": " + failure.Message
	} else if reason := work.UnhealthyReasons([]workv1alpha2.AggregatedStatusItem{c.item})[c.name]; reason != "" {
		link.Verdict = Failed
		link.Message += ": " + reason
	}
	if link.Reason == podfailure.ImagePullBackOff {
		link.Remedy = "correct the image, or the pull secret in the namespace of the Pods in cluster " + c.name
	}
	if c.hasAnswers && c.answers.Pods.Err != nil {
		link.Message += fmt.Sprintf("; its Pods could not be read: %v", c.answers.Pods.Err)
	}
	return link
}

func (c *clusterFacts) lacksPods() bool {
	return c.answers.Object.Value != nil && podfailure.LacksPods(c.answers.Object.Value)
}

// describeReady returns the ready replicas of a reflected status, such as ": 2/4 ready". It returns
// an empty text for a status without replicas.
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
