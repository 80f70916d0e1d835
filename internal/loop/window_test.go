package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"karmada.io/karmada/internal/domain/pacing"
)

func TestAdaptiveWindowGrowsWithChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := NewAdaptiveWindow(pacing.Policy{BusyRate: 10}, pacing.Window{Idle: 0, Busy: 10 * time.Millisecond})
		for change := 1; change <= 20; change++ {
			if got, want := window.Delay(), time.Duration(min(change, 10))*time.Millisecond; got != want {
				t.Errorf("change %d: delay %s, want %s", change, got, want)
			}
		}
		<-time.After(2 * time.Second)
		if got := window.Delay(); got != time.Millisecond {
			t.Errorf("after a pause: delay %s, want 1ms", got)
		}
	})
}
