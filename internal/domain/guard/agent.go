package guard

import "time"

const (
	// agentRecheckDelay is the interval at which an agent decides again about a deletion that the
	// control plane has not permitted. Usually the watch delivers the permission earlier.
	agentRecheckDelay = 30 * time.Second
	// epochRecheckDelay is the interval at which an agent attempts to read the epoch again. It is
	// short, because unregister waits for the deletion of the Works.
	epochRecheckDelay = 2 * time.Second
	// LostPermissionsDelay is how long an agent may take for a permitted deletion after its execution
	// namespace is deleted. The agent's permissions are in that namespace and are deleted together
	// with it, so that the agent may never be able to execute the deletion.
	LostPermissionsDelay = time.Minute
)

// AgentFacts are the facts on which an agent decides about the deletion of one Work. An agent does
// not observe why a Work is deleted, so it deletes only what the control plane permits.
type AgentFacts struct {
	// IsEpochUnreadable is true if the agent may not read the epoch in which a permission is valid.
	IsEpochUnreadable bool
	// RestoreUnconfirmed and PreservesObjects have the same meaning as in Facts.
	RestoreUnconfirmed, PreservesObjects bool
	// IsPermitted is true if the control plane permitted the deletion of this Work in the current
	// epoch.
	IsPermitted bool
	// NeedsPermission is true if the control plane permits deletions. Control planes of other
	// releases do not: there, the deletion of the Work is itself the permission.
	NeedsPermission bool
}

// DecideForAgent returns the decision of an agent about the deletion of one Work. Users are not told
// about held deletions, because the control plane tells them.
func DecideForAgent(f AgentFacts) Decision {
	switch {
	case f.IsEpochUnreadable:
		return Decision{Reason: ReasonEpochUnreadable, RecheckAfter: epochRecheckDelay}
	case f.RestoreUnconfirmed && !f.PreservesObjects:
		return Decision{Reason: ReasonRestoreUnconfirmed, RecheckAfter: agentRecheckDelay}
	case f.IsPermitted, !f.NeedsPermission:
		return Decision{Action: Delete}
	default:
		return Decision{Reason: ReasonNotPermitted, RecheckAfter: agentRecheckDelay}
	}
}
