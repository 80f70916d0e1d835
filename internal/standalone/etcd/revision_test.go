package etcd

import (
	"path/filepath"
	"testing"
	"time"
)

// A restore on another machine cannot read how much was written since the earlier restore, because
// the data of the earlier restore is not on this machine.
func TestLaterRestoreElsewhereHasHigherRevision(t *testing.T) {
	const writesPerSecond = 10_000
	none := filepath.Join(t.TempDir(), "none")
	for name, ages := range map[string]struct{ earlier, later time.Duration }{
		"a minute later": {time.Minute, 2 * time.Minute},
		"a day later":    {time.Hour, 25 * time.Hour},
		"a year later":   {time.Hour, 365 * 24 * time.Hour},
		"a wrong clock":  {-time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			passed := int64((ages.later - ages.earlier) / time.Second)
			seen, now := int64(revisionIncrement(3, none, ages.earlier))+passed*writesPerSecond, int64(revisionIncrement(3, none, ages.later))
			if now <= seen {
				t.Errorf("revisions are raised by %d, but revision %d was used before", now, seen)
			}
		})
	}
	if got := revisionIncrement(3, none, -time.Hour); got < revisionBump {
		t.Errorf("a backup from the future raises revisions by %d", got)
	}
}
