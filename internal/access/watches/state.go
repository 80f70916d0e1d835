package watches

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"karmada.io/karmada/internal/access/member/bounds"
)

// Phase is the phase of a watch.
type Phase string

const (
	// Syncing means that no complete list has been read from the current connection.
	Syncing Phase = "Syncing"
	// Synced means that the objects are up to date.
	Synced Phase = "Synced"
	// Failing means that the last attempt to list or watch the objects failed, and will be repeated.
	Failing Phase = "Failing"
	// NotServed means that discovery shows that the API server does not serve the kind.
	NotServed Phase = "NotServed"
	// Denied means that the API server does not allow Karmada to list or watch the objects.
	Denied Phase = "Denied"
	// OverBounds means that the objects exceed a limit for the data of one cluster.
	OverBounds Phase = "OverBounds"
)

// State is the state of a watch.
type State struct {
	Phase Phase
	// HasListed is true if a complete list was read from the current connection and the kind is
	// served. Then the stored objects are usable, although they may be outdated unless Phase is
	// Synced.
	HasListed bool
	// Err is the cause of the phase. It is nil if Phase is Syncing or Synced.
	Err error
	// Since is the time at which Phase began.
	Since time.Time
}

// next returns the state after an attempt with the given outcome.
func (s State) next(outcome error, now time.Time) State {
	next := State{Phase: phaseOf(outcome), HasListed: s.HasListed, Err: outcome, Since: s.Since}
	switch next.Phase {
	case Synced:
		next.HasListed = true
	case NotServed:
		next.HasListed = false
	}
	if next.Phase != s.Phase {
		next.Since = now
	}
	return next
}

func phaseOf(outcome error) Phase {
	switch {
	case outcome == nil:
		return Synced
	case meta.IsNoMatchError(outcome):
		return NotServed
	case apierrors.IsForbidden(outcome):
		return Denied
	case errors.As(outcome, new(*bounds.ExceededError)):
		return OverBounds
	default:
		return Failing
	}
}
