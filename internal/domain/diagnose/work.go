package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/work"
)

// clusterFacts are the facts about one cluster of a binding.
type clusterFacts struct {
	*Facts
	bound binding.Object
	name  string
	// isExpected reports whether the binding expects its template in the cluster.
	isExpected bool
	// member is the Cluster, or nil if it does not exist or could not be read.
	member *clusterv1alpha1.Cluster
	// work is the Work, or nil. renderFailure is the reason why no current Work could be rendered.
	work          *workv1alpha1.Work
	renderFailure string
	isRendered    bool
	// item is the status that the Work reports.
	item workv1alpha2.AggregatedStatusItem
	// answers are the responses of the member. hasAnswers is false if it was not queried.
	answers    MemberFacts
	hasAnswers bool
}

// checkClusters checks the Work, the member object and the status in each cluster: first the Works
// of all clusters, then the members, then the statuses.
func checkClusters(f *Facts) []Link {
	if f.Works.Err != nil {
		return []Link{unreadable(Link{Stage: StageWork}, "the Works", f.Works.Err)}
	}
	var works, members, statuses []Link
	for _, of := range f.clusterFacts() {
		delivered := of.checkWork()
		works = append(works, delivered)
		if !of.isExpected {
			continue
		}
		member := of.checkMember(delivered)
		members = append(members, member)
		statuses = append(statuses, of.checkStatus(delivered, member))
	}
	return slices.Concat(works, members, statuses)
}

// clusterFacts returns the facts about each cluster that should have the template or has a Work,
// sorted by name.
func (f *Facts) clusterFacts() []clusterFacts {
	bound := f.Binding.Value
	rendering := work.RenderingOf(bound)
	expected := binding.ExpectedClusters(bound.BindingSpec())
	byCluster := map[string]*clusterFacts{}
	for name := range expected {
		byCluster[name] = &clusterFacts{Facts: f, bound: bound, name: name, isExpected: true}
	}
	for _, each := range f.Works.Value {
		name, ok := work.ClusterOf(each.Namespace)
		if !ok || !binding.BelongsTo(each, bound) {
			continue
		}
		if byCluster[name] == nil {
			byCluster[name] = &clusterFacts{Facts: f, bound: bound, name: name}
		}
		of := byCluster[name]
		if of.work == nil || of.work.DeletionTimestamp != nil && each.DeletionTimestamp == nil {
			of.work, of.isRendered = each, rendering.IsCurrent(each)
		}
	}
	aggregation := work.Aggregate(f.Works.Value, bound.BindingSpec().Resource, work.AggregateOptions{
		NotReadySince: f.notReadySince, CredentialsProblem: f.credentialsProblem, PurgedClusters: binding.DirectlyPurgedClusters(bound.BindingSpec()),
	})
	for _, item := range aggregation.Items {
		if of := byCluster[item.ClusterName]; of != nil {
			of.item = item
		}
	}
	var all []clusterFacts
	for _, name := range slices.Sorted(maps.Keys(byCluster)) {
		of := byCluster[name]
		of.member, of.renderFailure = f.cluster(name), rendering.Failures()[name]
		of.answers, of.hasAnswers = f.Members[name]
		all = append(all, *of)
	}
	return all
}

// checkWork checks that the cluster has a current Work, and that the Work is applied.
func (c *clusterFacts) checkWork() Link {
	link := Link{Stage: StageWork, Cluster: c.name, Verdict: Failed}
	switch {
	case c.Clusters.Err == nil && c.member == nil:
		link.Reason, link.Message = ReasonClusterGone, fmt.Sprintf("cluster %s does not exist", c.name)
		link.Remedy = "join the cluster again, or wait until the scheduler chooses other clusters"
	case c.renderFailure != "":
		link.Reason, link.Message = ReasonRenderFailed, c.renderFailure
		link.Remedy = "correct the override policy, the customization or the template that the message names"
	case c.work == nil:
		link.Verdict, link.Reason = Pending, ReasonWorkMissing
		link.Message = "there is no Work in namespace " + work.ExecutionNamespace(c.name)
		link.Remedy = "check that karmada-controller-manager runs; kubectl describe " + kubectlBinding(c.bound)
	case c.work.DeletionTimestamp != nil:
		return c.checkDeletion(link)
	case !c.isExpected:
		link.Verdict, link.Reason = Pending, ReasonRemainsElsewhere
		link.Message = fmt.Sprintf("cluster %s is no longer chosen, but Work %s still exists", c.name, objectPath(c.work))
		link.Remedy = "kubectl describe " + kubectlWork(c.work)
	case c.isSuspended():
		link.Verdict, link.Reason = Pending, ReasonDispatchSuspended
		link.Message = c.describeSuspension()
		link.Remedy = "remove spec.suspension from the policy or the binding that suspends the delivery"
	case !c.isTarget():
		return c.checkEvicted(link)
	case !c.isRendered:
		link.Verdict, link.Reason = Pending, ReasonWorkOutdated
		link.Message = fmt.Sprintf("Work %s is not rendered from the current binding and template yet", objectPath(c.work))
		link.Remedy = "kubectl describe " + kubectlBinding(c.bound)
	default:
		return c.checkApplied(link)
	}
	return link
}

// isTarget reports whether the scheduler chose the cluster. An expected cluster that is no target
// keeps its old copy during an eviction.
func (c *clusterFacts) isTarget() bool {
	return slices.ContainsFunc(binding.TargetClusters(c.bound.BindingSpec()), func(target workv1alpha2.TargetCluster) bool { return target.Name == c.name })
}

func (c *clusterFacts) isSuspended() bool {
	return work.IsSuspended(c.work) || binding.IsDispatchSuspended(c.bound, c.name)
}

func (c *clusterFacts) describeSuspension() string {
	if dependents := binding.SuspendedDependents(c.bound, c.name); len(dependents) > 0 {
		return fmt.Sprintf("dispatching is suspended in cluster %s for the bindings that require this one: %s", c.name, strings.Join(dependents, ", "))
	}
	if change, suspended := policy.DescribeSuspension(nil, c.bound); suspended {
		return change.Message
	}
	return fmt.Sprintf("Work %s suspends dispatching", objectPath(c.work))
}

// checkDeletion describes a Work that is being deleted.
func (c *clusterFacts) checkDeletion(link Link) Link {
	held := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkDeletionHeld)
	if held != nil && held.Status == metav1.ConditionTrue {
		link.Reason, link.Message = held.Reason, fmt.Sprintf("the deletion of Work %s is held: %s", objectPath(c.work), held.Message)
		link.Remedy = "confirm the deletion only if it is right: the message has the command"
		return link
	}
	link.Verdict, link.Reason = Pending, ReasonTerminating
	link.Message = fmt.Sprintf("Work %s is being deleted since %s", objectPath(c.work), formatTime(c.work.DeletionTimestamp))
	if c.member != nil && !cluster.IsReady(c.member) {
		link.Message += "; " + describeNotReady(c.member)
	}
	return link
}

// checkEvicted describes the old copy that stays in a cluster during an eviction.
func (c *clusterFacts) checkEvicted(link Link) Link {
	link.Verdict, link.Reason = Pending, ReasonRemainsElsewhere
	link.Message = fmt.Sprintf("the workload is being evicted from cluster %s, and Work %s keeps the old copy", c.name, objectPath(c.work))
	tasks := c.bound.BindingSpec().GracefulEvictionTasks
	for i := range tasks {
		if tasks[i].FromCluster == c.name {
			link.Reason = cmp.Or(tasks[i].Reason, link.Reason)
			link.Message = strings.TrimSuffix(link.Message+": "+tasks[i].Message, ": ")
		}
	}
	return link
}

// checkApplied checks that the member has the current generation of the Work.
func (c *clusterFacts) checkApplied(link Link) Link {
	applied := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkApplied)
	contested := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkDriftConflict)
	isOutdated := work.HasUnappliedGeneration(c.work)
	switch {
	case applied != nil && applied.Status == metav1.ConditionFalse:
		return c.explainFailure(link, applied)
	case applied == nil || isOutdated:
		return c.checkUnapplied(link, isOutdated)
	case contested != nil && contested.Status == metav1.ConditionTrue:
		link.Reason, link.Message = contested.Reason, contested.Message
		link.Remedy = "write into the template what the other client writes, or stop that client"
	default:
		link.Verdict, link.Reason = OK, ReasonApplied
		link.Message = fmt.Sprintf("Work %s is applied", objectPath(c.work))
	}
	return link
}

// checkUnapplied describes a Work that the member does not have yet.
func (c *clusterFacts) checkUnapplied(link Link, isOutdated bool) Link {
	link.Verdict, link.Reason = Pending, ReasonNotApplied
	link.Message = fmt.Sprintf("Work %s is not applied yet", objectPath(c.work))
	if isOutdated {
		link.Message = fmt.Sprintf("an earlier generation of Work %s is applied, and generation %d is not applied yet", objectPath(c.work), c.work.Generation)
	}
	if c.member != nil && !cluster.IsReady(c.member) {
		link.Verdict, link.Reason = Failed, ReasonClusterNotReady
		link.Message += "; " + describeNotReady(c.member)
		link.Remedy = "kubectl describe cluster " + c.name
		return link
	}
	link.Remedy = "check that karmada-controller-manager runs, or karmada-agent in pull mode; kubectl describe " + kubectlWork(c.work)
	return link
}
