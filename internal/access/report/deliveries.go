package report

import "time"

// deliveries counts how many Works are delivered in a second.
type deliveries struct {
	second          int64
	current, before int
}

// note counts one delivery.
func (d *deliveries) note(now time.Time) {
	d.turn(now)
	d.current++
}

// perSecond is the count of the last whole second, or that of the one that runs
// if it is larger already.
func (d *deliveries) perSecond(now time.Time) int {
	d.turn(now)
	return max(d.current, d.before)
}

// turn begins a new second if the last is over.
func (d *deliveries) turn(now time.Time) {
	switch second := now.Unix(); second - d.second {
	case 0:
	case 1:
		d.second, d.before, d.current = second, d.current, 0
	default:
		d.second, d.before, d.current = second, 0, 0
	}
}
