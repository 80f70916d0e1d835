// Package diagnose explains whether a template is in its clusters as its user wants, and if not, why.
//
// Trace walks the pipeline of propagation: template, policy, binding, schedule, override, Work, member,
// status. In each stage it returns links, each with a result, a reason, a message and a remedy. The
// commands trace and tree print these links.
//
// Invariants:
//   - All functions are pure: the caller reads the facts and passes them in, with an error in place of
//     each fact that could not be read.
//   - A fact that could not be read gives the result Unknown, never OK.
//   - The functions that the controllers call make the decisions. This package only describes the
//     decisions.
//   - Equal facts give equal diagnoses. Links are in the order of the stages, then sorted by cluster.
package diagnose

import (
	"slices"

	"karmada.io/karmada/internal/domain/binding"
)

// Stage is a step on the way of a template to its clusters.
type Stage string

// Values of Stage, in the order of the pipeline.
const (
	StageTemplate Stage = "template"
	StagePolicy   Stage = "policy"
	StageBinding  Stage = "binding"
	StageSchedule Stage = "schedule"
	StageOverride Stage = "override"
	StageWork     Stage = "work"
	StageMember   Stage = "member"
	StageStatus   Stage = "status"
)

// stage describes one stage of the pipeline.
type stage struct {
	name Stage
	// isReached reports whether the earlier stages created the objects that this stage needs.
	isReached func(*pipeline) bool
	diagnose  func(*pipeline) []Link
}

// stages returns the pipeline in order. Each row names the component that acts in the stage and the
// functions with which this component decides. Package simulation makes the decisions up to the schedule
// for planned objects, with the same functions.
func stages() []stage {
	return []stage{
		// detector: tenancy.PropagationRules
		{StageTemplate, func(*pipeline) bool { return true }, (*pipeline).diagnoseTemplate},
		// detector: policy.Decide, policy.CheckDependentOverrides, policy.DecideActivation
		{StagePolicy, (*pipeline).hasTemplate, (*pipeline).diagnosePolicy},
		// detector: binding.Find, policy.CheckBindingOwner, policy.UpdateBinding
		{StageBinding, (*pipeline).hasTemplate, (*pipeline).diagnoseBinding},
		// scheduler: placement.Decide, placement.Explain; taint manager: failover.EvictionDeadline
		{StageSchedule, (*pipeline).ownsBinding, (*pipeline).diagnoseSchedule},
		// binding controller: override.Specificity, override.TargetsCluster
		{StageOverride, (*pipeline).hasTemplateAndBinding, (*pipeline).diagnoseOverrides},
		// binding controller: work.RenderingOf; execution controller: the condition Applied
		{StageWork, (*pipeline).ownsBinding, (*pipeline).diagnoseWorks},
		// execution controller: work.MayWrite
		{StageMember, (*pipeline).hasWorks, (*pipeline).diagnoseMembers},
		// work status controller: work.Aggregate
		{StageStatus, (*pipeline).hasWorks, (*pipeline).diagnoseStatuses},
	}
}

// Stages returns the names of all stages in the order of the pipeline.
func Stages() []Stage {
	var names []Stage
	for _, each := range stages() {
		names = append(names, each.name)
	}
	return names
}

// Result says whether a check passed.
type Result string

// Results of a check.
const (
	// OK means that the state is as the user wants.
	OK Result = "ok"
	// Failed means that the state is not as the user wants, and that it stays so or needs attention.
	Failed Result = "failed"
	// Pending means that the stage waits for a controller, a member or a decision of the user.
	Pending Result = "pending"
	// Unknown means that a fact could not be read.
	Unknown Result = "unknown"
	// NotApplicable means that an earlier link makes the check impossible, or that the template
	// does not need the check.
	NotApplicable Result = "notApplicable"
)

// severity returns a number that is higher for a more severe result.
func (v Result) severity() int {
	return slices.Index([]Result{NotApplicable, OK, Pending, Unknown, Failed}, v)
}

// Link is one check with its result.
type Link struct {
	Stage Stage `json:"stage"`
	// Cluster is the member cluster. It is empty for checks in the control plane.
	Cluster string `json:"cluster,omitempty"`
	Result  Result `json:"result"`
	// Reason is one of the constants Reason…, or a reason of a condition or of a member.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Remedy is a command or a sentence that tells the user what to do. It is empty if nothing needs
	// to be done.
	Remedy string `json:"remedy,omitempty"`
}

// Target is a cluster that the scheduler chose.
type Target struct {
	Cluster string `json:"cluster"`
	// Replicas is nil if the template has no replicas.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Diagnosis contains the links that Trace found.
type Diagnosis struct {
	// Result is the most severe result of the links: Failed, Unknown, Pending, OK, NotApplicable.
	Result Result `json:"result"`
	Links  []Link `json:"links"`
	// Targets are the clusters in the binding, sorted by name.
	Targets []Target `json:"targets,omitempty"`
	// LeftOut are the other clusters, sorted by name.
	LeftOut []LeftOutCluster `json:"leftOut,omitempty"`
}

// Trace walks the pipeline for one template. A stage that earlier stages do not reach has no links.
func Trace(facts Facts) Diagnosis {
	p := newPipeline(&facts)
	diagnosis := Diagnosis{Result: NotApplicable}
	for _, each := range stages() {
		if each.isReached(p) {
			diagnosis.Links = append(diagnosis.Links, each.diagnose(p)...)
		}
	}
	for i := range diagnosis.Links {
		if result := diagnosis.Links[i].Result; result.severity() > diagnosis.Result.severity() {
			diagnosis.Result = result
		}
	}
	if p.ownsBinding() {
		diagnosis.Targets, diagnosis.LeftOut = TargetsOf(p.Binding.Value), p.leftOut()
	}
	return diagnosis
}

// Summary returns the link that describes the state after the given stages: the most severe link, and of
// equally severe links the last one. cluster is empty for links in the control plane. Without links,
// Summary returns a link whose state is unknown.
func (d Diagnosis) Summary(cluster string, stages ...Stage) Link {
	summary := Link{Cluster: cluster, Result: NotApplicable, Reason: ReasonNotChecked}
	for i := range d.Links {
		link := &d.Links[i]
		if link.Cluster == cluster && slices.Contains(stages, link.Stage) && link.Result.severity() >= summary.Result.severity() {
			summary = *link
		}
	}
	return summary
}

// pipeline is the pipeline of one template, with the facts of each cluster.
type pipeline struct {
	*Facts
	// clusters are the clusters that should have the template or have a Work, sorted by name. They are
	// nil without a binding.
	clusters []*clusterFacts
}

func (p *pipeline) hasTemplate() bool { return p.Template.Value != nil }

func (p *pipeline) hasTemplateAndBinding() bool { return p.hasTemplate() && p.ownsBinding() }

func (p *pipeline) hasWorks() bool { return p.ownsBinding() && p.Works.Err == nil }

// isAttachedOnly reports whether the binding gets its clusters only from the bindings of its dependents. The
// scheduler ignores such a binding.
func isAttachedOnly(bound binding.Object) bool {
	return bound.BindingSpec().Placement == nil && len(bound.BindingSpec().RequiredBy) > 0
}
