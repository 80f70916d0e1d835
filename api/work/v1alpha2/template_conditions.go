package v1alpha2

// MemberConditionPodFailure is a condition that Karmada adds to the status which
// it reflects of a workload in a member: Pods of the workload cannot be scheduled,
// cannot get their image, or do not stay up. The message says why. A Deployment in
// the control plane has it while a cluster has it.
const MemberConditionPodFailure = "PodFailure"

// Reasons of the conditions Available and Progressing of a Deployment in the control
// plane, beside those that the members give.
const (
	// TemplateNotAppliedReason: a cluster does not have the template, and the cause
	// is known.
	TemplateNotAppliedReason = "NotApplied"
	// TemplateNotReportedReason: a cluster has not reported on the template yet.
	TemplateNotReportedReason = "NotReported"
	// TemplateNoClusterReason: no cluster is chosen.
	TemplateNoClusterReason = "NoClusterChosen"
)
