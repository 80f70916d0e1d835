package v1alpha2

// MemberConditionPodFailure is a condition that Karmada adds to the reflected status of a
// workload in a member: Pods of the workload cannot be scheduled, cannot pull their image,
// or do not keep running. The message contains the reason. A Deployment in the control
// plane has this condition while a cluster reports it.
const MemberConditionPodFailure = "PodFailure"

// Reasons of the conditions Available and Progressing of a Deployment in the control
// plane, in addition to those that the members report.
const (
	// TemplateNotAppliedReason: a cluster does not have the object of the template, and the cause
	// is known.
	TemplateNotAppliedReason = "NotApplied"
	// TemplateNotReportedReason: a cluster has not reported a status of the template yet.
	TemplateNotReportedReason = "NotReported"
	// TemplateNoClusterReason: no cluster is chosen for the template.
	TemplateNoClusterReason = "NoClusterChosen"
)
