package kinds

import "time"

// rediscoveryDelays are the delays of the discoveries after a definition changed. Several
// discoveries are needed, because the API server serves an accepted definition a moment later and
// sends no notification.
var rediscoveryDelays = [...]time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second}

// discoverySchedule decides when the served kinds are listed again: at intervals, and several times
// after definitions changed.
type discoverySchedule struct {
	interval  time.Duration
	step      int
	expedited bool
	pending   bool
}

// recordChange records a change of definitions and reports whether the timer must be set to an
// earlier time. Further changes do not delay a pending discovery.
func (p *discoverySchedule) recordChange() bool {
	p.step, p.expedited = 0, true
	if p.pending {
		return false
	}
	p.pending = true
	return true
}

// recordDiscovery records that the kinds were listed after the pending changes.
func (p *discoverySchedule) recordDiscovery() {
	p.pending = false
	if p.expedited {
		p.step++
	}
	if p.step >= len(rediscoveryDelays) {
		p.step, p.expedited = 0, false
	}
}

// nextDelay returns the delay until the next discovery.
func (p *discoverySchedule) nextDelay() time.Duration {
	if p.expedited {
		return min(rediscoveryDelays[p.step], p.interval)
	}
	return p.interval
}
