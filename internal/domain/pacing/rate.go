package pacing

import "time"

// Rate counts changes per second. In the zero value the count is 0. It is not safe for concurrent
// use.
type Rate struct {
	second            int64
	current, previous int
}

// Record counts one change.
func (r *Rate) Record(now time.Time) {
	r.rollOver(now)
	r.current++
}

// PerSecond returns the larger of two counts: that of the last whole second and that of the current
// second.
func (r *Rate) PerSecond(now time.Time) int {
	r.rollOver(now)
	return max(r.current, r.previous)
}

// rollOver starts to count a new second if the current second is over.
func (r *Rate) rollOver(now time.Time) {
	switch second := now.Unix(); second - r.second {
	case 0:
	case 1:
		r.second, r.previous, r.current = second, r.current, 0
	default:
		r.second, r.previous, r.current = second, 0, 0
	}
}
