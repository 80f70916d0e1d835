package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// maxBatchBytes limits the total size of the documents in one write. One document is always permitted,
// regardless of its size.
const maxBatchBytes = 2 << 20

// storedPageSize is the number of documents that Stored reads at once.
const storedPageSize = 16 << 10

// Name implements feed.Sink.
func (f *FullText) Name() string { return "the full-text index" }

// Wants implements feed.Sink. It returns true, because all sources are indexed.
func (f *FullText) Wants(objectcache.Source) bool { return true }

// Apply implements feed.Sink.
func (f *FullText) Apply(ctx context.Context, changes []feed.Change) error {
	batch := f.index.NewBatch()
	var buffer []byte
	for _, change := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if change.Object == nil {
			batch.Delete(documentID(change.ID))
			continue
		}
		var content map[string]any
		var err error
		if content, buffer, err = Decode(change.Object, buffer); err != nil {
			return err
		}
		if err := batch.Index(documentID(change.ID), newDocument(change.Object, content)); err != nil {
			return fmt.Errorf("indexing an object: %w", err)
		}
		if batch.TotalDocsSize() < maxBatchBytes {
			continue
		}
		if err := f.write(batch); err != nil {
			return err
		}
		batch = f.index.NewBatch()
	}
	return f.write(batch)
}

var errNotWritten = errors.New("the disk does not store changes in time: check the disk of the full-text index")

// write writes a batch, and waits until it is on disk.
func (f *FullText) write(batch *bleve.Batch) error {
	if batch.Size() == 0 {
		return nil
	}
	if err := f.ensureWritten(); err != nil {
		return err
	}
	if err := f.send(batch); err != nil {
		return fmt.Errorf("writing %d objects to the full-text index: %w", batch.Size(), err)
	}
	return nil
}

// ensureWritten returns errNotWritten if changes are not on disk after a failed write. bleve keeps
// these changes in memory, where searches find them, and retries. Further changes would need more
// memory, and the feed would not notice that they are not on disk. A write without documents succeeds
// only after all earlier writes have succeeded.
func (f *FullText) ensureWritten() error {
	if !f.hasUnwritten.Load() {
		return nil
	}
	probe := f.index.NewBatch()
	probe.SetInternal([]byte("probe"), []byte(time.Now().Format(time.RFC3339Nano)))
	if err := f.send(probe); err != nil {
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	return nil
}

// send passes a batch to bleve, and waits until it is on disk. It has no context, because bleve writes
// the batch even if the request ends.
func (f *FullText) send(batch *bleve.Batch) error {
	written := make(chan error, 1)
	go func() { written <- f.index.Batch(batch) }()
	timeout := time.NewTimer(f.options.WriteTimeout)
	defer timeout.Stop()
	var err error
	select {
	case err = <-written:
	case <-timeout.C:
		err = errNotWritten
	}
	f.hasUnwritten.Store(err != nil)
	return err
}

// Stored implements feed.Sink.
func (f *FullText) Stored(ctx context.Context, source objectcache.Source, yield func(feed.ID, string) error) error {
	if err := f.ensureWritten(); err != nil {
		return err
	}
	var failure error
	_, _, err := f.eachHit(ctx, hits{
		query: termsQuery(sourceField, sourceTerm(&source)), sort: []string{keyField, versionField}, pageSize: storedPageSize,
	}, func(hit *search.DocumentMatch) bool {
		cluster, uid, _ := strings.Cut(hit.ID, separator)
		failure = yield(feed.ID{Cluster: cluster, UID: types.UID(uid)}, hit.Sort[1])
		return failure == nil
	})
	return errors.Join(err, failure)
}

// Sources implements feed.Sink.
func (f *FullText) Sources(ctx context.Context) ([]objectcache.Source, error) {
	terms, _, err := f.terms(ctx, sourceField, "", math.MaxInt, func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	var sources []objectcache.Source
	for _, term := range terms {
		// bleve keeps the terms of deleted documents for some time.
		count := bleve.NewSearchRequestOptions(termsQuery(sourceField, term), 0, 0, false)
		found, err := f.index.SearchInContext(ctx, count)
		if err != nil {
			return nil, fmt.Errorf("reading the sources of the full-text index: %w", err)
		}
		if position, ok := parseKey(term); ok && found.Total > 0 {
			sources = append(sources, objectcache.Source{Cluster: position.Cluster, Kind: position.Kind})
		}
	}
	return sources, nil
}
