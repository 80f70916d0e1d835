package bindingstatus

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// versions are the resourceVersions of the last writes for a binding.
type versions struct{ binding, template string }

// ledger remembers what was last written, because a cache shows it only a moment
// later: whoever compares with an older status finds no difference where there is
// one, and leaves a status behind that nobody looks at again.
//
// It may be lost: after a start caches are newer than all that was written.
type ledger struct {
	mu      sync.Mutex
	written map[reconcile.Request]versions
}

func newLedger() *ledger { return &ledger{written: map[reconcile.Request]versions{}} }

func (l *ledger) versions(of reconcile.Request) versions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written[of]
}

func (l *ledger) wroteBinding(of reconcile.Request, version string) {
	l.update(of, func(v *versions) { v.binding = version })
}

func (l *ledger) wroteTemplate(of reconcile.Request, version string) {
	l.update(of, func(v *versions) { v.template = version })
}

func (l *ledger) update(of reconcile.Request, change func(*versions)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.written[of]
	change(&v)
	l.written[of] = v
}

func (l *ledger) forget(of reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, of)
}

// older tells that a version precedes another. What cannot be compared is not
// older.
func older(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// statuslessFor is how long a kind is taken to have no status once the API server
// said so; a newer definition may give it one.
const statuslessFor = 5 * time.Minute

// statusless remembers kinds whose objects have no status to write.
type statusless struct {
	mu    sync.Mutex
	until map[schema.GroupVersionKind]time.Time
}

func newStatusless() *statusless { return &statusless{until: map[schema.GroupVersionKind]time.Time{}} }

func (s *statusless) note(kind schema.GroupVersionKind, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[kind] = now.Add(statuslessFor)
}

func (s *statusless) has(kind schema.GroupVersionKind, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, noted := s.until[kind]
	if noted && now.Before(until) {
		return true
	}
	delete(s.until, kind)
	return false
}
