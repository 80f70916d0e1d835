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

// writeTracker holds the versions of this process's last writes, because a cache shows a write
// with a delay. A comparison with an older status could miss a difference, and the wrong
// status would stay.
//
// It may be lost: after a start, caches are newer than all earlier writes.
type writeTracker struct {
	mu        sync.Mutex
	byBinding map[reconcile.Request]versions
}

func newWriteTracker() *writeTracker {
	return &writeTracker{byBinding: map[reconcile.Request]versions{}}
}

func (l *writeTracker) lastVersions(request reconcile.Request) versions {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byBinding[request]
}

func (l *writeTracker) recordBindingWrite(request reconcile.Request, version string) {
	l.update(request, func(v *versions) { v.binding = version })
}

func (l *writeTracker) recordTemplateWrite(request reconcile.Request, version string) {
	l.update(request, func(v *versions) { v.template = version })
}

func (l *writeTracker) update(request reconcile.Request, change func(*versions)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.byBinding[request]
	change(&v)
	l.byBinding[request] = v
}

func (l *writeTracker) delete(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byBinding, request)
}

// isOlder reports whether a version precedes another. Versions that cannot be compared are not
// older.
func isOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// noStatusTTL is how long a kind is treated as having no status after the API server answered
// so. A newer definition of the kind may add a status.
const noStatusTTL = 5 * time.Minute

// kindsWithoutStatus holds the kinds whose objects have no status subresource.
type kindsWithoutStatus struct {
	mu     sync.Mutex
	expiry map[schema.GroupVersionKind]time.Time
}

func newKindsWithoutStatus() *kindsWithoutStatus {
	return &kindsWithoutStatus{expiry: map[schema.GroupVersionKind]time.Time{}}
}

func (s *kindsWithoutStatus) add(kind schema.GroupVersionKind, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry[kind] = now.Add(noStatusTTL)
}

func (s *kindsWithoutStatus) has(kind schema.GroupVersionKind, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	expiry, known := s.expiry[kind]
	if known && now.Before(expiry) {
		return true
	}
	delete(s.expiry, kind)
	return false
}
