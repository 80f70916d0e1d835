package binding

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

const (
	// staleRetryDelay is the time until the next reconcile after the cache was out of date.
	staleRetryDelay = 20 * time.Millisecond
	// maxCacheLag is how long a watch may lag before the API server is asked.
	maxCacheLag = 10 * time.Second
)

// pendingWrite is a write that the cache may not show yet.
type pendingWrite struct {
	version        string
	askServerAfter time.Time
}

// workWriteTracker holds the writes of each binding until the cache shows them. An earlier
// reconcile would miss Works. If it removed the finalizer of the binding, these Works would
// stay for ever.
//
// It may be lost: a new process starts with a full list.
type workWriteTracker struct {
	cache, karmadaReader client.Reader
	now                  func() time.Time

	mu      sync.Mutex
	pending map[types.NamespacedName]map[types.NamespacedName]pendingWrite
}

func newWorkWriteTracker(cache, karmadaReader client.Reader, now func() time.Time) *workWriteTracker {
	return &workWriteTracker{cache: cache, karmadaReader: karmadaReader, now: now, pending: map[types.NamespacedName]map[types.NamespacedName]pendingWrite{}}
}

// recordWrite records that a Work was written for a binding, and its version.
func (l *workWriteTracker) recordWrite(bound types.NamespacedName, written *workv1alpha1.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[bound] == nil {
		l.pending[bound] = map[types.NamespacedName]pendingWrite{}
	}
	l.pending[bound][client.ObjectKeyFromObject(written)] = pendingWrite{version: written.ResourceVersion, askServerAfter: l.now().Add(maxCacheLag)}
}

// recordDelete records that the watch delivered the deletion of a Work. A write with a later
// version belongs to another Work of the same name.
func (l *workWriteTracker) recordDelete(bound types.NamespacedName, deleted *workv1alpha1.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(deleted)
	written, ok := l.pending[bound][key]
	if !ok {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(deleted.ResourceVersion, written.version); err == nil && order >= 0 {
		l.removeLocked(bound, key)
	}
}

// delete removes the writes of a deleted binding.
func (l *workWriteTracker) delete(bound types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, bound)
}

// isCacheCurrent reports whether the cache shows all writes for a binding, or newer versions.
// It is not called twice at a time for one binding.
func (l *workWriteTracker) isCacheCurrent(ctx context.Context, bound types.NamespacedName) (bool, error) {
	l.mu.Lock()
	pending := maps.Clone(l.pending[bound])
	l.mu.Unlock()
	for key, written := range pending {
		ok, err := l.isVisible(ctx, key, written)
		if !ok || err != nil {
			return false, err
		}
		l.mu.Lock()
		l.removeLocked(bound, key)
		l.mu.Unlock()
	}
	return true, nil
}

// removeLocked removes one write; l.mu is held.
func (l *workWriteTracker) removeLocked(bound, key types.NamespacedName) {
	delete(l.pending[bound], key)
	if len(l.pending[bound]) == 0 {
		delete(l.pending, bound)
	}
}

func (l *workWriteTracker) isVisible(ctx context.Context, key types.NamespacedName, written pendingWrite) (bool, error) {
	cached := &workv1alpha1.Work{}
	err := l.cache.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if err == nil {
		if !isOlder(cached.ResourceVersion, written.version) {
			return true, nil
		}
		if l.now().Before(written.askServerAfter) {
			return false, nil
		}
		return l.matchesServer(ctx, key, cached.ResourceVersion)
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading Work %s: %w", key, err)
	}
	if l.now().Before(written.askServerAfter) {
		return false, nil
	}
	// The Work may have been created and deleted while the watch was interrupted.
	err = l.karmadaReader.Get(ctx, key, cached)
	if err == nil || apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("reading Work %s: %w", key, err)
}

// matchesServer reports whether the API server has nothing newer than the cache. Then the
// write was lost, for example by the restore of a backup, and the cache will never show it.
func (l *workWriteTracker) matchesServer(ctx context.Context, key types.NamespacedName, cached string) (bool, error) {
	stored := &workv1alpha1.Work{}
	err := l.karmadaReader.Get(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Work %s: %w", key, err)
	}
	return !isOlder(cached, stored.ResourceVersion), nil
}

// isOlder reports whether a version precedes another. Versions that cannot be compared are not
// older.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
