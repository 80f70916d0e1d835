package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

const (
	// maxNamedFailures is the maximum number of estimators without an answer in a message.
	maxNamedFailures = 3
	// maxNamedTargets is the maximum number of chosen clusters in a message. Diagnosis.Targets has
	// all of them.
	maxNamedTargets = 10
)

// checkSchedule checks that the scheduler chose clusters for the latest version of the binding.
func checkSchedule(f *Facts) Link {
	bound := f.Binding.Value
	spec, status := bound.BindingSpec(), bound.BindingStatus()
	link := Link{Stage: StageSchedule, Verdict: Pending}
	chosen := describeTargets(bound)
	scheduled := conditions.Get(status.Conditions, workv1alpha2.Scheduled)
	switch {
	case isAttachedOnly(bound):
		link.Verdict, link.Reason = OK, ReasonAttached
		link.Message = "goes to the clusters of its dependents: " + chosen
	case placement.IsSchedulingSuspended(spec):
		link.Reason = ReasonSchedulingSuspended
		link.Message = "the scheduling is suspended, so the clusters stay as they are: " + chosen
		link.Remedy = fmt.Sprintf("kubectl patch %s --type=merge -p '{\"spec\":{\"suspension\":{\"scheduling\":false}}}'", kubectlBinding(bound))
	case !placement.IsSchedulable(bound, spec):
		link.Reason = ReasonNotManaged
		link.Message = "no policy claims the binding, so it is not scheduled and its clusters stay as they are: " + chosen
		link.Remedy = "create a policy that selects the template"
	case scheduled != nil && scheduled.Status == metav1.ConditionFalse && (isCurrent(bound, scheduled) || len(spec.Clusters) == 0):
		return failedSchedule(f, link, scheduled)
	case placement.IsSchedulingUnreported(bound.GetGeneration(), status):
		return unreportedSchedule(link, bound)
	case placement.WantsNoCopy(spec):
		link.Verdict, link.Reason, link.Message = OK, ReasonScaledToZero, "0 replicas are wanted, so no cluster has a copy"
	case len(spec.Clusters) == 0:
		link.Verdict, link.Reason, link.Message = Failed, ReasonNoCluster, "no cluster is chosen"
	default:
		link.Verdict, link.Reason, link.Message = OK, ReasonScheduled, chosen
		if scheduled != nil {
			link.Message += describeUnknown(f)
		}
	}
	return link
}

// isCurrent reports whether a condition describes the latest generation of the binding. A condition
// without a generation counts as current.
func isCurrent(bound binding.Object, condition *metav1.Condition) bool {
	return condition.ObservedGeneration == 0 || condition.ObservedGeneration >= bound.GetGeneration()
}

// unreportedSchedule describes a binding whose latest version no scheduler has handled.
func unreportedSchedule(link Link, bound binding.Object) Link {
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

// failedSchedule describes a failure that the scheduler reports.
func failedSchedule(f *Facts, link Link, scheduled *metav1.Condition) Link {
	bound := f.Binding.Value
	link.Verdict, link.Reason, link.Message = Failed, scheduled.Reason, strings.TrimSuffix(scheduled.Message, ".")
	switch scheduled.Reason {
	case workv1alpha2.BindingReasonNoClusterFit:
		link.Remedy = "change the placement of the policy, or the clusters that it leaves out"
	case workv1alpha2.BindingReasonUnschedulable:
		link.Remedy = "free or add resources in the clusters, lower the replicas or their requests, or select more clusters"
	case workv1alpha2.BindingReasonQuotaExceeded:
		link.Remedy = "raise the FederatedResourceQuota, or lower the replicas: kubectl get federatedresourcequota" + namespaceFlag(bound.GetNamespace())
	case workv1alpha2.BindingReasonSchedulerNotReporting:
		link.Reason = ReasonSchedulerMissing
		link.Remedy = unreportedSchedule(Link{}, bound).Remedy
	case workv1alpha2.BindingReasonClusterRemoved:
		link.Remedy = "check that the scheduler runs that schedulerName of the policy names"
	default:
		link.Remedy = "change the spread constraints or the placement of the policy, or join clusters that satisfy them"
	}
	if failures := describeEstimators(f); failures != "" {
		link.Message += "; " + failures
	}
	return link
}

// describeEstimators describes the estimators that did not respond, or returns an empty text.
func describeEstimators(f *Facts) string {
	var texts []string
	for _, cluster := range slices.Sorted(maps.Keys(f.Limits)) {
		for _, failure := range f.Limits[cluster].Failures {
			texts = append(texts, fmt.Sprintf("estimator %s has no answer for cluster %s: %v", failure.Estimator, cluster, failure.Err))
		}
	}
	if more := len(texts) - maxNamedFailures; more > 0 {
		texts = append(texts[:maxNamedFailures], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// describeUnknown names the clusters of the placement that do not exist, or returns an empty text.
func describeUnknown(f *Facts) string {
	bound := f.Binding.Value
	if f.Clusters.Err != nil || bound.BindingSpec().Placement == nil {
		return ""
	}
	unknown := placement.UnknownClusters(bound.BindingSpec().Placement, bound.BindingStatus().SchedulerObservedAffinityName, false, f.cluster)
	if text := placement.DescribeUnknownClusters(unknown); text != "" {
		return ". " + strings.TrimSuffix(text, ".")
	}
	return ""
}

// describeTargets lists the targets with their replicas, such as "east 4, west 2". It names at most
// maxNamedTargets clusters.
func describeTargets(bound binding.Object) string {
	var texts []string
	for _, target := range targetsOf(bound) {
		text := target.Cluster
		if target.Replicas != nil {
			text += fmt.Sprintf(" %d", *target.Replicas)
		}
		texts = append(texts, text)
	}
	if more := len(texts) - maxNamedTargets; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxNamedTargets], ", "), more)
	}
	return orNone(strings.Join(texts, ", "))
}
