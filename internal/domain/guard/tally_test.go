package guard

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestIsConfirmed(t *testing.T) {
	began := time.Date(2030, 5, 1, 10, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		text string
		want bool
	}{
		"no text":                       {"", false},
		"the same second":               {"2030-05-01T10:00:00Z", true},
		"later":                         {"2030-05-01T10:00:01Z", true},
		"earlier, for another deletion": {"2030-05-01T09:59:59Z", false},
		"another zone":                  {"2030-05-01T12:00:00+02:00", true},
		"another zone, earlier time":    {"2030-05-01T10:30:00+02:00", false},
		"not a time":                    {"yes", false},
		"a date":                        {"2030-05-02", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsConfirmed(test.text, began); got != test.want {
				t.Errorf("Confirmed = %v", got)
			}
		})
	}
}

func FuzzConfirmationNeverCoversLaterDeletions(f *testing.F) {
	f.Add("2030-05-01T10:00:00Z", int64(0))
	f.Add("yes", int64(1))
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		began := time.Unix(seconds%(1<<40), 0)
		if IsConfirmed(text, began) && !IsConfirmed(text, began.Add(-time.Hour)) {
			t.Error("an earlier deletion is not confirmed")
		}
	})
}

func TestWindowCounter(t *testing.T) {
	now := time.Date(2030, 5, 1, 10, 0, 0, 0, time.UTC)
	var tally WindowCounter
	if got := tally.Count(now); got != 0 {
		t.Errorf("an empty tally counts %d", got)
	}
	tally = tally.Add(2, now).Add(3, now.Add(2*time.Minute))
	for name, test := range map[string]struct {
		after time.Duration
		want  int
	}{
		"immediately":                   {2 * time.Minute, 5},
		"before the end of the window":  {4*time.Minute + 59*time.Second, 5},
		"after the first event expired": {6 * time.Minute, 3},
		"after both events expired":     {8 * time.Minute, 0},
		"after a long time":             {8000 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tally.Count(now.Add(test.after)); got != test.want {
				t.Errorf("Count = %d, want %d", got, test.want)
			}
		})
	}
}

func TestWindowCounterAgreesWithAllEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2030, 5, 1, 10, 0, 0, 0, time.UTC)
		var tally WindowCounter
		var events []time.Time
		for range rapid.IntRange(0, 50).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Minute)).Draw(t, "pause")))
			tally = tally.Add(1, now)
			events = append(events, now)
		}
		least, most := 0, 0
		for _, event := range events {
			if age := now.Sub(event); age <= Window-Window/slotCount {
				least++
			}
			if age := now.Sub(event); age <= Window {
				most++
			}
		}
		if got := tally.Count(now); got < least || got > most {
			t.Errorf("Count = %d, want %d to %d", got, least, most)
		}
	})
}
