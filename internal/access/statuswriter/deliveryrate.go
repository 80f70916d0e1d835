package statuswriter

import "time"

// deliveryRate counts the Works that are delivered per second.
type deliveryRate struct {
	second            int64
	current, previous int
}

// record counts one delivery.
func (d *deliveryRate) record(now time.Time) {
	d.rollOver(now)
	d.current++
}

// perSecond returns the count of the last whole second, or that of the current one if it is
// larger.
func (d *deliveryRate) perSecond(now time.Time) int {
	d.rollOver(now)
	return max(d.current, d.previous)
}

// rollOver starts a new second if the last one is over.
func (d *deliveryRate) rollOver(now time.Time) {
	switch second := now.Unix(); second - d.second {
	case 0:
	case 1:
		d.second, d.previous, d.current = second, d.current, 0
	default:
		d.second, d.previous, d.current = second, 0, 0
	}
}
