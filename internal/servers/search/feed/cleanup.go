package feed

import (
	"context"
	"fmt"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// requestCleanup makes runCleanups search for stored sources that the cache does not have.
func (f *Feed) requestCleanup() {
	select {
	case f.cleanups <- struct{}{}:
	default: // a request is already pending
	}
}

// runCleanups removes the objects of missing sources until ctx ends. It starts after the cache has
// evaluated all registries and clusters, because before that the cache has no sources.
func (f *Feed) runCleanups(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-f.cache.Evaluated():
	}
	failures := 0
	for ctx.Err() == nil {
		wait, err := f.cleanup(ctx)
		if err != nil && ctx.Err() == nil {
			wait = f.limits.retryDelay(failures)
			failures++
			if f.progress.setCleanup(err) {
				klog.FromContext(ctx).Error(err, "Removing objects of clusters and kinds that are not selected any more; retrying")
			}
		} else {
			failures = 0
			f.progress.setCleanup(nil)
		}
		f.awaitCleanup(ctx, wait, failures > 0)
	}
}

// awaitCleanup waits for a request or until the wait time is over. After a failure, it ignores
// requests.
func (f *Feed) awaitCleanup(ctx context.Context, wait time.Duration, isFailing bool) {
	requests := f.cleanups
	if isFailing {
		requests = nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-requests:
	case <-timer.C:
	}
}

// cleanup removes the sources that have been missing for RemoveAfter. It returns the time until the
// next cleanup is due.
func (f *Feed) cleanup(ctx context.Context) (next time.Duration, err error) {
	stored, err := f.sink.Sources(ctx)
	if err != nil {
		return 0, fmt.Errorf("listing the sources in %s: %w", f.sink.Name(), err)
	}
	next = f.limits.CompareEvery
	missing := map[sourceKey]time.Time{}
	var errs []error
	for _, source := range stored {
		if f.isExpected(source) {
			continue
		}
		since, wasMissing := f.missing[keyOf(source)]
		if !wasMissing {
			since = time.Now()
		}
		missing[keyOf(source)] = since
		if wait := time.Until(since.Add(f.limits.RemoveAfter)); wait > 0 {
			next = min(next, wait)
			continue
		}
		errs = append(errs, f.removeSource(ctx, source))
	}
	f.missing = missing
	return next, utilerrors.NewAggregate(errs)
}

// isExpected reports whether the sink wants the source and the cache has it, or may have it later. A
// selected source's objects stay until the member reports how it serves the kind.
func (f *Feed) isExpected(source objectcache.Source) bool {
	if kind := f.cache.KindOf(source.Kind); kind != nil {
		if objects := kind.Snapshot().Cluster(source.Cluster); objects != nil {
			return f.sink.Wants(*objects.Source())
		}
	}
	return f.cache.Selects(source.Cluster, source.Kind) && f.sink.Wants(source)
}

// removeSource removes all of the source's stored objects, unless the source has returned.
func (f *Feed) removeSource(ctx context.Context, source objectcache.Source) error {
	f.applying.Lock()
	defer f.applying.Unlock()
	if f.isExpected(source) {
		return nil
	}
	b := newBatch(f)
	err := f.sink.Stored(ctx, source, func(id ID, _ string) error {
		return b.add(ctx, Change{ID: id, Source: source})
	})
	if err == nil {
		err = b.flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("removing the %s of cluster %q from %s: %w", source.Kind.Kind, source.Cluster, f.sink.Name(), err)
	}
	return nil
}
