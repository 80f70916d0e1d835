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

// denialAge is how long the denial of a watch counts. A watch is tried again more often.
const denialAge = 2 * time.Minute

// deny notes that the member does not let a kind be watched. It reports whether that
// is known already, so that it need not be logged again.
func (m *Member) deny(description string, err error) (known bool) {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	for kind, watch := range m.kinds.watched {
		if kind.String() == description {
			known = watch.denial != nil && watch.denial.Error() == err.Error()
			watch.denial, watch.deniedAt = err, time.Now()
		}
	}
	return known
}

// permit notes that the member lets a kind be listed or watched. If it did not before,
// those who follow the kind are told as if it were served again.
func (m *Member) permit(kind schema.GroupVersionKind) {
	m.kinds.mu.Lock()
	watch := m.kinds.watched[kind]
	denied := watch != nil && watch.denial != nil
	if denied {
		watch.denial = nil
	}
	m.kinds.mu.Unlock()
	if denied {
		m.returned(kind)
	}
}

// permitting calls a function when a list or the start of a watch succeeds.
type permitting struct {
	toolscache.ListerWatcherWithContext
	permit func()
}

// List implements cache.ListerWatcher.
func (p permitting) List(o metav1.ListOptions) (runtime.Object, error) {
	return p.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (p permitting) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), o)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (p permitting) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := p.ListerWatcherWithContext.ListWithContext(ctx, o)
	if err == nil {
		p.permit()
	}
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (p permitting) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := p.ListerWatcherWithContext.WatchWithContext(ctx, o)
	if err == nil {
		p.permit()
	}
	return events, err
}

// Denial returns why the member does not let a kind be watched, nil if it does or if
// that is not known. The status of objects of such a kind is not seen, and neither are
// changes by others.
func (m *Member) Denial(kind schema.GroupVersionKind) error {
	m.kinds.mu.Lock()
	defer m.kinds.mu.Unlock()
	watch := m.kinds.watched[kind]
	if watch == nil || time.Since(watch.deniedAt) > denialAge {
		return nil
	}
	return watch.denial
}
