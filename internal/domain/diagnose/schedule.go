package diagnose

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// maxNamedTargets limits how many chosen clusters a message names. Diagnosis.Targets has all of them.
const maxNamedTargets = 10

// UnscheduledReason returns the reason why no scheduler places the binding, or "" if a scheduler does.
func UnscheduledReason(bound binding.Object) string {
	spec := bound.BindingSpec()
	switch {
	case isAttachedOnly(bound):
		return ReasonAttached
	case placement.IsSchedulingSuspended(spec):
		return ReasonSchedulingSuspended
	case !placement.IsSchedulable(bound, spec):
		return ReasonNotManaged
	default:
		return ""
	}
}

// diagnoseSchedule checks that the scheduler chose clusters for the latest generation of the binding, and
// explains for each chosen cluster with taints why the template is there.
func (p *pipeline) diagnoseSchedule() []Link {
	links := []Link{p.explainSchedule(Link{Stage: StageSchedule, Result: Pending})}
	if p.Clusters.Err != nil {
		links = append(links, Link{Stage: StageSchedule}.unreadable("the clusters", p.Clusters.Err))
	}
	return append(links, p.diagnoseTaints()...)
}

// explainSchedule describes the scheduler's decision about the binding.
func (p *pipeline) explainSchedule(link Link) Link {
	bound := p.Binding.Value
	spec, status := bound.BindingSpec(), bound.BindingStatus()
	chosen := DescribeTargets(TargetsOf(bound), maxNamedTargets)
	scheduled := conditions.Get(status.Conditions, workv1alpha2.Scheduled)
	reason := UnscheduledReason(bound)
	switch {
	case reason == ReasonAttached:
		link.Result, link.Reason = OK, reason
		link.Message = "goes to the clusters of its dependents: " + chosen
	case reason == ReasonSchedulingSuspended:
		link.Reason = reason
		link.Message = "the scheduling is suspended, so the clusters stay as they are: " + chosen
		link.Remedy = fmt.Sprintf("kubectl patch %s --type=merge -p '{\"spec\":{\"suspension\":{\"scheduling\":false}}}'", kubectlBinding(bound))
	case reason == ReasonNotManaged:
		link.Reason = reason
		link.Message = "no policy claims the binding, so it is not scheduled and its clusters stay as they are: " + chosen
		link.Remedy = "create a policy that selects the template"
	case scheduled != nil && scheduled.Status == metav1.ConditionFalse && (isCurrent(bound, scheduled) || len(spec.Clusters) == 0):
		return explainFailedSchedule(link, bound, scheduled)
	case placement.IsSchedulingUnreported(bound.GetGeneration(), status) && !binding.IsScheduled(bound):
		return explainUnreportedSchedule(link, bound)
	case placement.WantsNoCopy(spec):
		link.Result, link.Reason, link.Message = OK, ReasonScaledToZero, "0 replicas are wanted, so no cluster has a copy"
	case len(spec.Clusters) == 0:
		link.Result, link.Reason, link.Message = Failed, ReasonNoCluster, "no cluster is chosen"
	default:
		link.Result, link.Reason, link.Message = OK, ReasonScheduled, chosen
		if scheduled != nil {
			link.Message += p.describeUnknownClusters()
		}
	}
	return link
}

// isCurrent reports whether a condition describes the latest generation of the binding. A condition
// without a generation counts as current.
func isCurrent(bound binding.Object, condition *metav1.Condition) bool {
	return condition.ObservedGeneration == 0 || condition.ObservedGeneration >= bound.GetGeneration()
}

// explainUnreportedSchedule describes a binding whose latest generation no scheduler has handled.
func explainUnreportedSchedule(link Link, bound binding.Object) Link {
	name := placement.SchedulerName(bound.BindingSpec())
	link.Reason = ReasonNotScheduled
	link.Message = fmt.Sprintf("scheduler %q has not handled generation %d of the binding yet", name, bound.GetGeneration())
	link.Remedy = "check that karmada-scheduler runs"
	if name != policyv1alpha1.DefaultSchedulerName {
		link.Reason = ReasonSchedulerMissing
		link.Remedy = fmt.Sprintf("start a karmada-scheduler with --scheduler-name=%s, or create the policy again without schedulerName", name)
	}
	return link
}

// explainFailedSchedule describes a failure that the scheduler reports in the condition Scheduled.
func explainFailedSchedule(link Link, bound binding.Object, scheduled *metav1.Condition) Link {
	link.Result, link.Reason, link.Message = Failed, scheduled.Reason, strings.TrimSuffix(scheduled.Message, ".")
	switch scheduled.Reason {
	case workv1alpha2.BindingReasonNoClusterFit:
		link.Remedy = "change the placement of the policy, or the clusters that it leaves out"
	case workv1alpha2.BindingReasonUnschedulable:
		link.Remedy = "free or add resources in the clusters, lower the replicas or their requests, or select more clusters"
	case workv1alpha2.BindingReasonQuotaExceeded:
		link.Remedy = "raise the FederatedResourceQuota, or lower the replicas: kubectl get federatedresourcequota" +
			namespaceFlag(bound.GetNamespace())
	case workv1alpha2.BindingReasonSchedulerNotReporting:
		link.Reason = ReasonSchedulerMissing
		link.Remedy = explainUnreportedSchedule(Link{}, bound).Remedy
	case workv1alpha2.BindingReasonClusterRemoved:
		link.Remedy = "check that the scheduler runs that schedulerName of the policy names"
	default:
		link.Remedy = "change the spread constraints or the placement of the policy, or join clusters that satisfy them"
	}
	return link
}

// describeUnknownClusters names the clusters that the placement selects but that do not exist. It returns
// an empty string if there are none.
func (p *pipeline) describeUnknownClusters() string {
	bound := p.Binding.Value
	if p.Clusters.Err != nil || bound.BindingSpec().Placement == nil {
		return ""
	}
	unknown := placement.UnknownClusters(bound.BindingSpec().Placement, bound.BindingStatus().SchedulerObservedAffinityName, false, p.cluster)
	if text := placement.DescribeUnknownClusters(unknown); text != "" {
		return ". " + strings.TrimSuffix(text, ".")
	}
	return ""
}
