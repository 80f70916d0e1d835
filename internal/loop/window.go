package loop

import (
	"sync"
	"time"

	"karmada.io/karmada/internal/domain/pacing"
)

// AdaptiveWindow decides how long the changes of an object are collected before a pass. The delay
// grows with the number of changes of all objects.
type AdaptiveWindow struct {
	policy pacing.Policy
	window pacing.Window

	mu      sync.Mutex
	changes pacing.Rate
}

// NewAdaptiveWindow returns an AdaptiveWindow with the given policy and window.
func NewAdaptiveWindow(policy pacing.Policy, window pacing.Window) *AdaptiveWindow {
	return &AdaptiveWindow{policy: policy, window: window}
}

// Delay counts a change and returns the delay before the pass that handles this change.
func (a *AdaptiveWindow) Delay() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.changes.Record(now)
	return a.policy.At(a.window, a.changes.PerSecond(now))
}
