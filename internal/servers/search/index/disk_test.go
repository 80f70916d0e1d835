package index

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/blevesearch/bleve/v2"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

var errDiskFull = errors.New("no space left on device")

// bleveIndex renames bleve.Index for embedding, because bleve.Index has a method Index.
type bleveIndex = bleve.Index

// fullDisk is an index whose disk can be full. As in bleve, a failed batch's documents stay in memory.
type fullDisk struct {
	bleveIndex
	isFull atomic.Bool
	// writes is the number of batches with documents.
	writes atomic.Int64
}

func (d *fullDisk) Batch(batch *bleve.Batch) error {
	if batch.TotalDocsSize() > 0 {
		d.writes.Add(1)
	}
	err := d.bleveIndex.Batch(batch)
	if d.isFull.Load() {
		return errDiskFull
	}
	return err
}

func TestAFullDiskIsReportedUntilAllIsWritten(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	disk := &fullDisk{bleveIndex: fullText.index}
	fullText.index = disk
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
	if got := disk.writes.Load(); got != 1 {
		t.Errorf("bleve got documents %d times, want only the first", got)
	}
	disk.isFull.Store(false)
	if err := errors.Join(stored(), apply()); err != nil {
		t.Errorf("after the disk has space again: %v", err)
	}
}
