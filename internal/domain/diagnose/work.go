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
	// work is the Work, or nil. isRendered reports whether it is rendered from the current binding and
	// template. renderFailure is the reason why no current Work could be rendered.
	work          *workv1alpha1.Work
	isRendered    bool
	renderFailure string
	// item is the status that the Work reports.
	item workv1alpha2.AggregatedStatusItem
	// observed are the facts that were read from the member. They are zero if isQueried is false.
	observed  MemberFacts
	isQueried bool
	// workLink and memberLink are the results of the stages work and member.
	workLink, memberLink Link
}

// newPipeline returns the pipeline with the facts of each cluster that should have the template or has a
// Work, sorted by name.
func newPipeline(f *Facts) *pipeline {
	p := &pipeline{Facts: f}
	if !f.ownsBinding() {
		return p
	}
	bound := f.Binding.Value
	rendering := work.RenderingOf(bound)
	byCluster := map[string]*clusterFacts{}
	for name := range binding.ExpectedClusters(bound.BindingSpec()) {
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
		NotReadySince: f.notReadySince, CredentialsProblem: f.credentialsProblem,
		PurgedClusters: binding.DirectlyPurgedClusters(bound.BindingSpec()),
	})
	for _, item := range aggregation.Items {
		if of := byCluster[item.ClusterName]; of != nil {
			of.item = item
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byCluster)) {
		of := byCluster[name]
		of.member, of.renderFailure = f.cluster(name), rendering.Failures()[name]
		of.observed, of.isQueried = f.Members[name]
		p.clusters = append(p.clusters, of)
	}
	return p
}

// diagnoseWorks checks the Work of each cluster.
func (p *pipeline) diagnoseWorks() []Link {
	if p.Works.Err != nil {
		return []Link{Link{Stage: StageWork}.unreadable("the Works", p.Works.Err)}
	}
	links := make([]Link, len(p.clusters))
	for i, each := range p.clusters {
		each.workLink = each.diagnoseWork()
		links[i] = each.workLink
	}
	return links
}

// diagnoseMembers checks the member object in each cluster that should have one.
func (p *pipeline) diagnoseMembers() []Link {
	var links []Link
	for _, each := range p.clusters {
		if each.isExpected {
			each.memberLink = each.diagnoseMember()
			links = append(links, each.memberLink)
		}
	}
	return links
}

// diagnoseStatuses checks the status in each cluster that should have the member object.
func (p *pipeline) diagnoseStatuses() []Link {
	var links []Link
	for _, each := range p.clusters {
		if each.isExpected {
			links = append(links, each.diagnoseStatus())
		}
	}
	return links
}

// diagnoseWork checks that the cluster has a current Work, and that the Work is applied.
func (c *clusterFacts) diagnoseWork() Link {
	link := Link{Stage: StageWork, Cluster: c.name, Result: Failed}
	switch {
	case c.Clusters.Err == nil && c.member == nil:
		link.Reason, link.Message = ReasonClusterGone, fmt.Sprintf("cluster %s does not exist", c.name)
		link.Remedy = "join the cluster again, or wait until the scheduler chooses other clusters"
	case c.renderFailure != "":
		link.Reason, link.Message = ReasonRenderFailed, c.renderFailure
		link.Remedy = "correct the override policy, the customization or the template that the message names"
	case c.work == nil:
		link.Result, link.Reason = Pending, ReasonWorkMissing
		link.Message = "there is no Work in namespace " + work.ExecutionNamespace(c.name)
		link.Remedy = "check that karmada-controller-manager runs; kubectl describe " + kubectlBinding(c.bound)
	case c.work.DeletionTimestamp != nil:
		return c.explainDeletion(link)
	case !c.isExpected:
		link.Result, link.Reason = Pending, ReasonRemainsElsewhere
		link.Message = fmt.Sprintf("cluster %s is no longer chosen, but Work %s still exists", c.name, objectPath(c.work))
		link.Remedy = "kubectl describe " + kubectlWork(c.work)
	case work.IsSuspended(c.work) || binding.IsDispatchSuspended(c.bound, c.name):
		link.Result, link.Reason = Pending, ReasonDispatchSuspended
		link.Message = c.describeSuspension()
		link.Remedy = "remove spec.suspension from the policy or the binding that suspends the delivery"
	case !c.isTarget():
		return c.explainEviction(link)
	case !c.isRendered:
		link.Result, link.Reason = Pending, ReasonWorkOutdated
		link.Message = fmt.Sprintf("Work %s is not rendered from the current binding and template yet", objectPath(c.work))
		link.Remedy = "kubectl describe " + kubectlBinding(c.bound)
	default:
		return c.explainApplied(link)
	}
	return link
}

// isTarget reports whether the scheduler chose the cluster. An expected cluster that is not a target keeps
// its old copy during an eviction.
func (c *clusterFacts) isTarget() bool {
	return slices.ContainsFunc(binding.TargetClusters(c.bound.BindingSpec()),
		func(target workv1alpha2.TargetCluster) bool { return target.Name == c.name })
}

// describeSuspension describes what suspends the delivery to the cluster.
func (c *clusterFacts) describeSuspension() string {
	if dependents := binding.SuspendedDependents(c.bound, c.name); len(dependents) > 0 {
		return fmt.Sprintf("dispatching is suspended in cluster %s for the bindings that require this one: %s", c.name,
			strings.Join(dependents, ", "))
	}
	if change, suspended := policy.DescribeSuspension(nil, c.bound); suspended {
		return change.Message
	}
	return fmt.Sprintf("Work %s suspends dispatching", objectPath(c.work))
}

// explainDeletion describes a Work that is being deleted.
func (c *clusterFacts) explainDeletion(link Link) Link {
	held := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkDeletionHeld)
	if held != nil && held.Status == metav1.ConditionTrue {
		link.Reason, link.Message = held.Reason, fmt.Sprintf("the deletion of Work %s is held: %s", objectPath(c.work), held.Message)
		link.Remedy = "confirm the deletion only if it is intended: the message contains the command"
		return link
	}
	link.Result, link.Reason = Pending, ReasonTerminating
	link.Message = fmt.Sprintf("Work %s is being deleted since %s", objectPath(c.work), formatTime(c.work.DeletionTimestamp))
	if c.member != nil && !cluster.IsReady(c.member) {
		link.Message += "; " + describeNotReady(c.member)
	}
	return link
}

// explainEviction describes the old copy that stays in the cluster during an eviction.
func (c *clusterFacts) explainEviction(link Link) Link {
	link.Result, link.Reason = Pending, ReasonRemainsElsewhere
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

// explainApplied describes whether the member has the current generation of the Work.
func (c *clusterFacts) explainApplied(link Link) Link {
	applied := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkApplied)
	conflict := conditions.Get(c.work.Status.Conditions, workv1alpha1.WorkDriftConflict)
	isOutdated := work.HasUnappliedGeneration(c.work)
	switch {
	case applied != nil && applied.Status == metav1.ConditionFalse:
		return c.explainRejection(link, applied)
	case applied == nil || isOutdated:
		return c.explainUnapplied(link, isOutdated)
	case conflict != nil && conflict.Status == metav1.ConditionTrue:
		link.Reason, link.Message = conflict.Reason, conflict.Message
		link.Remedy = "write into the template what the other client writes, or stop that client"
	default:
		link.Result, link.Reason = OK, ReasonApplied
		link.Message = fmt.Sprintf("Work %s is applied", objectPath(c.work))
	}
	return link
}

// explainUnapplied describes a Work that the member does not have yet. isOutdated reports whether the member
// has an earlier generation.
func (c *clusterFacts) explainUnapplied(link Link, isOutdated bool) Link {
	link.Result, link.Reason = Pending, ReasonNotApplied
	link.Message = fmt.Sprintf("Work %s is not applied yet", objectPath(c.work))
	if isOutdated {
		link.Message = fmt.Sprintf("an earlier generation of Work %s is applied, and generation %d is not applied yet", objectPath(c.work),
			c.work.Generation)
	}
	if c.member != nil && !cluster.IsReady(c.member) {
		link.Result, link.Reason = Failed, ReasonClusterNotReady
		link.Message += "; " + describeNotReady(c.member)
		link.Remedy = "kubectl describe cluster " + c.name
		return link
	}
	link.Remedy = "check that karmada-controller-manager runs, or karmada-agent in pull mode; kubectl describe " + kubectlWork(c.work)
	return link
}
