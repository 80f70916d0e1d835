package index

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

// countingSink counts the changes that the feed applies.
type countingSink struct {
	*FullText
	applied atomic.Int64
}

func (c *countingSink) Apply(ctx context.Context, changes []feed.Change) error {
	err := c.FullText.Apply(ctx, changes)
	c.applied.Add(int64(len(changes)))
	return err
}

// runFeed runs a feed until the test or stop ends it.
func runFeed(t *testing.T, cache *objectcachetest.Cache, sink feed.Sink) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); feed.New(cache.Cache, sink, feed.Limits{}).Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// waitFor waits until the feed has applied the given number of changes.
func waitFor(t *testing.T, sink *countingSink, applied int64) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(5 * time.Millisecond); sink.applied.Load() < applied; {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the feed applied %d changes, want %d", sink.applied.Load(), applied)
		}
	}
}

func TestFeedKeepsTheIndexEqualToTheCache(t *testing.T) {
	cache, directory := newCache(t), t.TempDir()
	first := &countingSink{FullText: openIndex(t, directory, cache.Cache)}
	stop := runFeed(t, cache, first)
	const objects = 21
	waitFor(t, first, objects)
	cache.Put("m1", newObject(objectcachetest.Pods, "shop", "web", webPod("web", "changed:2")))
	waitFor(t, first, objects+1)
	if got := verified(t.Context(), t, first, "changed", Cursor{}, 10); len(got) != 1 {
		t.Errorf("the changed object is found %d times", len(got))
	}
	stop()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := &countingSink{FullText: openIndex(t, directory, cache.Cache)}
	cache.Delete("m1", newObject(objectcachetest.Pods, "shop", "web", nil))
	runFeed(t, cache, second)
	waitFor(t, second, 1)
	if got := verified(t.Context(), t, second, "nginx ns=shop cluster=m1", Cursor{}, 10); len(got) != 1 {
		t.Errorf("after the deletion, %v is found", got)
	}
	if applied := second.applied.Load(); applied != 1 {
		t.Errorf("after a restart with one change, the feed applied %d changes", applied)
	}
}
