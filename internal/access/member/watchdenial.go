package member

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// denialMaxAge is the age after which a recorded denial of a watch is ignored. A denied watch is
// retried more often than this.
const denialMaxAge = 2 * time.Minute

// recordDenial records that the member does not allow a watch of a kind. It reports whether the
// same denial was already recorded, so that the caller logs it only once.
func (m *Member) recordDenial(description string, err error) (known bool) {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	for kind, watch := range m.kinds.watches {
		if kind.String() == description {
			known = watch.denial != nil && watch.denial.Error() == err.Error()
			watch.denial, watch.deniedAt = err, time.Now()
		}
	}
	return known
}

// clearDenial records that the member allows a list or watch of a kind. If a denial was recorded,
// it notifies the subscribers that the watch was restored.
func (m *Member) clearDenial(kind schema.GroupVersionKind) {
	m.kinds.mu.Lock()
	watch := m.kinds.watches[kind]
	denied := watch != nil && watch.denial != nil
	if denied {
		watch.denial = nil
	}
	m.kinds.mu.Unlock()
	if denied {
		m.onWatchRestored(kind)
	}
}

// successNotifier is a ListerWatcher that calls onSuccess when a list or the start of a watch
// succeeds.
type successNotifier struct {
	toolscache.ListerWatcherWithContext
	onSuccess func()
}

// List implements cache.ListerWatcher.
func (s successNotifier) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (s successNotifier) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (s successNotifier) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := s.ListerWatcherWithContext.ListWithContext(ctx, o)
	if err == nil {
		s.onSuccess()
	}
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (s successNotifier) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := s.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err == nil {
		s.onSuccess()
	}
	return events, err
}

// WatchDenial returns the error with which the member denies a watch of a kind. It returns nil if
// the watch is allowed or the answer is unknown. Without the watch, Karmada observes neither
// changes of the status nor changes by other clients.
func (m *Member) WatchDenial(kind schema.GroupVersionKind) error {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	watch := m.kinds.watches[kind]
	if watch == nil || time.Since(watch.deniedAt) > denialMaxAge {
		return nil
	}
	return watch.denial
}
