package index

import (
	"errors"
	"sync/atomic"
	"testing"

	indexapi "github.com/blevesearch/bleve_index_api"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

var errDiskFull = errors.New("no space left on device")

// fullDisk is an index whose disk can be full: as in the library, the documents of a batch are then in
// memory although the batch fails.
type fullDisk struct {
	indexapi.Index
	isFull    atomic.Bool
	documents atomic.Int64
}

func (d *fullDisk) Batch(batch *indexapi.Batch) error {
	d.documents.Add(int64(len(batch.IndexOps)))
	err := d.Index.Batch(batch)
	if d.isFull.Load() {
		return errDiskFull
	}
	return err
}

func TestAFullDiskIsReportedUntilAllIsWritten(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	disk := &fullDisk{Index: fullText.current.index}
	fullText.current.index = disk
	node := cache.KindOf(objectcachetest.Nodes.GroupVersionKind).Snapshot().Cluster("m1").Get("", "node-1")
	apply := func() error {
		return fullText.Apply(t.Context(), []feed.Change{{ID: feed.IDOf(node), Source: *node.Source(), Object: node}})
	}
	stored := func() error {
		return fullText.Stored(t.Context(), *node.Source(), func(feed.ID, string) error { return nil })
	}
	disk.isFull.Store(true)
	if err := apply(); !errors.Is(err, errDiskFull) {
		t.Errorf("the first write returns %v", err)
	}
	for range 3 {
		if err := apply(); !errors.Is(err, errNotWritten) {
			t.Errorf("a write returns %v", err)
		}
		if err := stored(); !errors.Is(err, errNotWritten) {
			t.Errorf("a comparison returns %v", err)
		}
	}
	if got := disk.documents.Load(); got != 1 {
		t.Errorf("the library got %d documents, want only the first", got)
	}
	disk.isFull.Store(false)
	if err := errors.Join(stored(), apply()); err != nil {
		t.Errorf("after the disk has space again: %v", err)
	}
}
