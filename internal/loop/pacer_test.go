package loop

import (
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	start := time.Unix(1000, 0)
	var rate changeRate
	for range 5 {
		rate.record(start)
	}
	for after, want := range map[time.Duration]int{0: 5, 999 * time.Millisecond: 5, time.Second: 5} {
		counted := rate
		if got := counted.perSecond(start.Add(after)); got != want {
			t.Errorf("after %s: %d per second, want %d", after, got, want)
		}
	}
	if got := rate.perSecond(start.Add(2 * time.Second)); got != 0 {
		t.Errorf("after 2s: %d per second, want 0", got)
	}
}

func TestCollectDelayGrowsWithChanges(t *testing.T) {
	now, window := noon, PacingWindow{Idle: 0, Busy: 10 * time.Millisecond}
	pacer := NewPacer[int](PacingPolicy{BusyRate: 10}, 0)
	for change := 1; change <= 20; change++ {
		if got, want := pacer.CollectDelay(window, now), time.Duration(min(change, 10))*time.Millisecond; got != want {
			t.Errorf("change %d: delay %s, want %s", change, got, want)
		}
	}
	if got := pacer.CollectDelay(window, now.Add(2*time.Second)); got != time.Millisecond {
		t.Errorf("after a pause: delay %s, want 1ms", got)
	}
}

func TestTurnDelayRestartsAfterWrite(t *testing.T) {
	now := noon
	p := NewPacer[int](DefaultPacingPolicy(), 3)
	for _, step := range []struct{ after, want time.Duration }{
		{0, time.Second}, {400 * time.Millisecond, 600 * time.Millisecond}, {600 * time.Millisecond, 0}, {0, time.Second},
	} {
		now = now.Add(step.after)
		if got := p.TurnDelay(1, now, time.Second, now); got != step.want {
			t.Errorf("delay %s, want %s", got, step.want)
		}
	}
	if p.EndWait(1); len(p.waitingSince) != 0 {
		t.Error("a key that needs no write still waits")
	}
}

// Each key asks again when its delay is over, as a queue would do.
func TestKeysShareRateLimit(t *testing.T) {
	const many = 1000
	policy := DefaultPacingPolicy()
	perSecond := policy.BindingProgressPerSecond
	p := NewPacer[int](policy, perSecond)
	due := map[int]time.Time{}
	for i := range many {
		due[i] = noon
	}
	writes, attempts := map[int]int{}, 0
	for at := noon; len(due) > 0 && at.Before(noon.Add(time.Hour)); at = at.Add(100 * time.Millisecond) {
		for i := range many {
			if next, waits := due[i]; !waits || next.After(at) {
				continue
			}
			attempts++
			if wait := p.TurnDelay(i, at, time.Second, at); wait > 0 {
				due[i] = at.Add(wait)
				continue
			}
			writes[int(at.Sub(noon)/time.Second)]++
			delete(due, i)
		}
	}
	last := int(policy.MaxProgressDelay / time.Second)
	for second, written := range writes {
		if second > last || second < last && written > 2*perSecond {
			t.Errorf("%d are written after %d s", written, second)
		}
	}
	if len(due) > 0 || attempts > 8*many {
		t.Errorf("%d are not written, %d attempts of %d keys", len(due), attempts, many)
	}
}

func TestReserveTurn(t *testing.T) {
	p := NewPacer[string](PacingPolicy{}, 1)
	reserve := func(key string, now time.Time) time.Duration {
		delay, ok := p.ReserveTurn(key, now)
		if !ok {
			return -1
		}
		return delay
	}
	for i, step := range []struct {
		key  string
		at   time.Duration
		want time.Duration
	}{
		{"a", 0, 0}, {"b", 0, time.Second}, {"b", 0, -1}, {"c", 500 * time.Millisecond, 1500 * time.Millisecond}, {"d", time.Minute, 0},
	} {
		if got := reserve(step.key, noon.Add(step.at)); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
	p.EndWait("b")
	if got := reserve("b", noon.Add(time.Hour)); got != 0 {
		t.Errorf("after its turn: %s", got)
	}
}
