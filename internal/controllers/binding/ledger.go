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
	// lagDelay is how soon to look again at what a watch has not brought yet.
	lagDelay = 20 * time.Millisecond
	// lagLimit is how long a watch may lag before the server is asked.
	lagLimit = 10 * time.Second
)

// note is one write that may not be seen yet.
type note struct {
	version string
	ask     time.Time
}

// ledger remembers what was written for each binding until the cache shows it. A
// pass that began before would overlook Works, and one that lets a binding go
// would leave them behind for good.
//
// It may be lost: a process that starts begins with a full list.
type ledger struct {
	seenBy, live client.Reader
	now          func() time.Time

	mu     sync.Mutex
	unseen map[types.NamespacedName]map[types.NamespacedName]note
}

func newLedger(seenBy, live client.Reader, now func() time.Time) *ledger {
	return &ledger{seenBy: seenBy, live: live, now: now, unseen: map[types.NamespacedName]map[types.NamespacedName]note{}}
}

// note remembers that a Work was written for a binding, and its version.
func (l *ledger) note(bound types.NamespacedName, written *workv1alpha1.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unseen[bound] == nil {
		l.unseen[bound] = map[types.NamespacedName]note{}
	}
	l.unseen[bound][client.ObjectKeyFromObject(written)] = note{version: written.ResourceVersion, ask: l.now().Add(lagLimit)}
}

// gone notes that the watch brought the end of a Work. What was written later than
// that is another Work of the same name.
func (l *ledger) gone(bound types.NamespacedName, deleted *workv1alpha1.Work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(deleted)
	written, ok := l.unseen[bound][key]
	if !ok {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(deleted.ResourceVersion, written.version); err == nil && order >= 0 {
		l.drop(bound, key)
	}
}

// forget drops what is remembered of a binding that is gone.
func (l *ledger) forget(bound types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unseen, bound)
}

// seen tells whether the cache shows everything that was written for a binding,
// or something newer. One binding is never worked on twice at a time.
func (l *ledger) seen(ctx context.Context, bound types.NamespacedName) (bool, error) {
	l.mu.Lock()
	unseen := maps.Clone(l.unseen[bound])
	l.mu.Unlock()
	for key, written := range unseen {
		ok, err := l.shows(ctx, key, written)
		if !ok || err != nil {
			return false, err
		}
		l.mu.Lock()
		l.drop(bound, key)
		l.mu.Unlock()
	}
	return true, nil
}

// drop forgets one write; l.mu is held.
func (l *ledger) drop(bound, key types.NamespacedName) {
	delete(l.unseen[bound], key)
	if len(l.unseen[bound]) == 0 {
		delete(l.unseen, bound)
	}
}

func (l *ledger) shows(ctx context.Context, key types.NamespacedName, written note) (bool, error) {
	cached := &workv1alpha1.Work{}
	err := l.seenBy.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	if err == nil {
		if !isOlder(cached.ResourceVersion, written.version) {
			return true, nil
		}
		if l.now().Before(written.ask) {
			return false, nil
		}
		return l.isCurrent(ctx, key, cached.ResourceVersion)
	}
	if !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("reading Work %s: %w", key, err)
	}
	if l.now().Before(written.ask) {
		return false, nil
	}
	// Perhaps it came and went while the watch was interrupted.
	err = l.live.Get(ctx, key, cached)
	if err == nil || apierrors.IsNotFound(err) {
		return err != nil, nil
	}
	return false, fmt.Errorf("reading Work %s: %w", key, err)
}

// isCurrent reports whether the server has nothing newer than the cache: then what was
// written is gone, as after the restore of a backup, and the cache never shows it.
func (l *ledger) isCurrent(ctx context.Context, key types.NamespacedName, cached string) (bool, error) {
	stored := &workv1alpha1.Work{}
	err := l.live.Get(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Work %s: %w", key, err)
	}
	return !isOlder(cached, stored.ResourceVersion), nil
}

// isOlder reports whether a version precedes another. Versions that cannot be compared
// do not.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
