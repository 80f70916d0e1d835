// Package diagnose explains why a template is, or is not, in a cluster as its user wants.
//
// Trace checks one chain: template, policy, binding, schedule, override, Work,
// member, status. Each check
// gives a link with a verdict, a reason, a message and a remedy. LeftOut explains for each cluster
// why the scheduler does not use it. Every view that explains a template uses these functions, so
// that all views give the same answer.
//
// Invariants:
//   - Every function is pure: the caller reads the facts and passes them in, with the error for each
//     fact that could not be read.
//   - A fact that could not be read gives the verdict Unknown, never OK.
//   - The decisions are those of the packages that the controllers use. This package only describes
//     them.
//   - Equal facts give equal diagnoses. Links are in the order of the chain, then sorted by cluster.
package diagnose

import (
	"slices"

	"karmada.io/karmada/internal/domain/binding"
)

// Stage is a step on the way of a template to its clusters.
type Stage string

// Values of Stage, in the order of the chain.
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

// Stages returns all stages in the order of the chain.
func Stages() []Stage {
	return []Stage{StageTemplate, StagePolicy, StageBinding, StageSchedule, StageOverride, StageWork, StageMember, StageStatus}
}

// Verdict is the result of a check.
type Verdict string

// Values of Verdict.
const (
	// OK means that the state is as the user wants.
	OK Verdict = "ok"
	// Failed means that the state is not as the user wants, and does not change by itself or needs
	// attention.
	Failed Verdict = "failed"
	// Pending means that the chain waits for a controller, a member or a decision of the user.
	Pending Verdict = "pending"
	// Unknown means that a fact could not be read.
	Unknown Verdict = "unknown"
	// NotApplicable means that an earlier link makes the check impossible, or that the template
	// does not need the check.
	NotApplicable Verdict = "notApplicable"
)

// severity orders verdicts. The verdict of a diagnosis is the most severe verdict of its links.
func (v Verdict) severity() int {
	return slices.Index([]Verdict{NotApplicable, OK, Pending, Unknown, Failed}, v)
}

// Worst returns the most severe verdict: Failed, Unknown, Pending, OK, NotApplicable. Without
// verdicts it returns NotApplicable.
func Worst(verdicts ...Verdict) Verdict {
	worst := NotApplicable
	for _, verdict := range verdicts {
		if verdict.severity() > worst.severity() {
			worst = verdict
		}
	}
	return worst
}

// Link is the result of one check.
type Link struct {
	Stage Stage `json:"stage"`
	// Cluster is the member cluster. It is empty for checks in the control plane.
	Cluster string  `json:"cluster,omitempty"`
	Verdict Verdict `json:"verdict"`
	// Reason is one of the constants Reason…, or a reason of a condition or of a member.
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Remedy is a command or a sentence that says what the user can do. It is empty if nothing
	// needs to be done.
	Remedy string `json:"remedy,omitempty"`
}

// Target is a cluster that the scheduler chose.
type Target struct {
	Cluster string `json:"cluster"`
	// Replicas is nil for a template without replicas.
	Replicas *int32 `json:"replicas,omitempty"`
}

// Diagnosis is the result of Trace.
type Diagnosis struct {
	// Verdict is the most severe verdict of the links.
	Verdict Verdict `json:"verdict"`
	Links   []Link  `json:"links"`
	// Targets are the clusters in the binding, sorted by name.
	Targets []Target `json:"targets,omitempty"`
	// LeftOut are the other clusters, sorted by name.
	LeftOut []LeftOutCluster `json:"leftOut,omitempty"`
}

// Trace checks the whole chain for one template. After a link without which later stages cannot
// exist, the diagnosis has no links for these stages.
func Trace(facts Facts) Diagnosis {
	diagnosis := Diagnosis{Links: []Link{checkTemplate(&facts)}}
	bound := facts.Binding.Value
	if facts.Template.Value != nil {
		diagnosis.Links = append(diagnosis.Links, checkPolicy(&facts), checkBinding(&facts))
	}
	if facts.ownsBinding() {
		diagnosis.Links = append(diagnosis.Links, checkSchedule(&facts))
		if facts.Clusters.Err != nil {
			diagnosis.Links = append(diagnosis.Links, unreadable(Link{Stage: StageSchedule}, "the clusters", facts.Clusters.Err))
		}
		diagnosis.Links = append(diagnosis.Links, checkTaints(&facts)...)
		diagnosis.Links = append(diagnosis.Links, checkOverridePolicies(&facts)...)
		diagnosis.Links = append(diagnosis.Links, checkClusters(&facts)...)
		diagnosis.Targets = targetsOf(bound)
		if !isAttachedOnly(bound) {
			diagnosis.LeftOut = LeftOut(LeftOutInput{Binding: bound, Clusters: facts.Clusters.Value, Limits: facts.Limits, Now: facts.Now})
		}
	}
	verdicts := make([]Verdict, 0, len(diagnosis.Links))
	for i := range diagnosis.Links {
		verdicts = append(verdicts, diagnosis.Links[i].Verdict)
	}
	diagnosis.Verdict = Worst(verdicts...)
	return diagnosis
}

// isAttachedOnly reports whether the scheduler does not handle the binding, because the binding only
// follows the bindings of its dependents.
func isAttachedOnly(bound binding.Object) bool {
	return bound.BindingSpec().Placement == nil && len(bound.BindingSpec().RequiredBy) > 0
}
