package detector

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
func (d *discoverySchedule) recordChange() bool {
	d.step, d.expedited = 0, true
	if d.pending {
		return false
	}
	d.pending = true
	return true
}

// recordDiscovery records that the kinds were listed after the pending changes.
func (d *discoverySchedule) recordDiscovery() {
	d.pending = false
	if d.expedited {
		d.step++
	}
	if d.step >= len(rediscoveryDelays) {
		d.step, d.expedited = 0, false
	}
}

// nextDelay returns the delay until the next discovery.
func (d *discoverySchedule) nextDelay() time.Duration {
	if d.expedited {
		return min(rediscoveryDelays[d.step], d.interval)
	}
	return d.interval
}
