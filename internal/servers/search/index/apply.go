package index

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	indexapi "github.com/blevesearch/bleve_index_api"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// apply writes changes in batches of bounded memory.
func (f *FullText) apply(ctx context.Context, g *generation, changes []feed.Change) error {
	batch, bytes := indexapi.NewBatch(), 0
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
		d := newDocument(change.ID, change.Object, content)
		batch.Update(d)
		if bytes += d.bytes; bytes < f.options.BatchBytes {
			continue
		}
		if err := f.write(g, batch); err != nil {
			return err
		}
		batch, bytes = indexapi.NewBatch(), 0
	}
	return f.write(g, batch)
}

var errNotWritten = errors.New("the disk does not store changes in time: check the disk of the full-text index")

// probeKey is the key of the value that a probe writes.
var probeKey = []byte("probe")

// ensureWritten returns errNotWritten while changes are not on disk. The library keeps the documents of a
// failed write in memory, where a search and Stored find them, so more documents would need more memory,
// and the feed would report a success. A probe without documents is on disk only after all of them.
func (f *FullText) ensureWritten(g *generation) error {
	if g.overdue.Load() > 0 {
		return errNotWritten
	}
	if !g.isFailing.Load() {
		return nil
	}
	probe := indexapi.NewBatch()
	probe.SetInternal(probeKey, []byte(time.Now().Format(time.RFC3339Nano)))
	if err := f.send(g, probe); err != nil {
		return fmt.Errorf("%w: %w", errNotWritten, err)
	}
	g.isFailing.Store(false)
	return nil
}

// write writes one batch, and waits until it is on disk.
func (f *FullText) write(g *generation, batch *indexapi.Batch) error {
	if len(batch.IndexOps) == 0 {
		return nil
	}
	if err := f.ensureWritten(g); err != nil {
		return err
	}
	if err := f.send(g, batch); err != nil {
		return fmt.Errorf("writing %d objects: %w", len(batch.IndexOps), err)
	}
	return nil
}

// send gives a batch to the library, and waits until it is on disk. The end of ctx does not end it,
// because a batch that is written later than a newer one would restore old documents. For the same
// reason, and to bound the memory, nothing is written while a batch is overdue: the feed compares
// afterwards.
func (f *FullText) send(g *generation, batch *indexapi.Batch) error {
	written := make(chan error, 1)
	g.users.Add(1)
	go func() {
		defer g.users.Done()
		err := g.index.Batch(batch)
		if err != nil {
			g.isFailing.Store(true)
		}
		written <- err
	}()
	timeout := time.NewTimer(f.options.ApplyTimeout)
	defer timeout.Stop()
	select {
	case err := <-written:
		return err
	case <-timeout.C:
		g.overdue.Add(1)
		go func() {
			if err := <-written; err != nil {
				f.options.Logger.Error(err, "Writing a batch that was overdue", "directory", g.directory)
			}
			g.overdue.Add(-1)
		}()
		return errNotWritten
	}
}

// Stored implements feed.Sink.
func (f *FullText) Stored(ctx context.Context, source objectcache.Source, yield func(feed.ID, string) error) error {
	return f.protected("reading the full-text index", func(g *generation) error {
		if err := f.ensureWritten(g); err != nil {
			return err
		}
		reader, err := g.index.Reader()
		if err != nil {
			return err
		}
		defer release(reader)
		documents, err := reader.TermFieldReader(ctx, []byte(sourceTerm(&source)), sourceField, false, false, false)
		if err != nil {
			return err
		}
		defer release(documents)
		versions, err := reader.DocValueReader([]string{versionField})
		if err != nil {
			return err
		}
		for {
			found, err := documents.Next(nil)
			if err != nil || found == nil {
				return err
			}
			if err := yieldStored(ctx, reader, versions, found.ID, yield); err != nil {
				return err
			}
		}
	})
}

func yieldStored(ctx context.Context, reader indexapi.IndexReader, versions indexapi.DocValueReader, number indexapi.IndexInternalID, yield func(feed.ID, string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	id, err := reader.ExternalID(number)
	if err != nil {
		return err
	}
	version := ""
	err = versions.VisitDocValues(number, func(_ string, term []byte) { version = string(term) })
	if err != nil {
		return err
	}
	cluster, uid, _ := strings.Cut(id, idSeparator)
	return yield(feed.ID{Cluster: cluster, UID: types.UID(uid)}, version)
}

// Sources implements feed.Sink.
func (f *FullText) Sources(ctx context.Context) ([]objectcache.Source, error) {
	var sources []objectcache.Source
	err := f.protected("reading the sources of the full-text index", func(g *generation) error {
		reader, err := g.index.Reader()
		if err != nil {
			return err
		}
		defer release(reader)
		terms, err := reader.FieldDict(sourceField)
		if err != nil {
			return err
		}
		defer release(terms)
		for {
			entry, err := terms.Next()
			if err != nil || entry == nil {
				return err
			}
			// A term remains until the segments of its deleted documents are merged.
			stored, err := hasDocuments(ctx, reader, entry.Term)
			if err != nil {
				return err
			}
			if source, ok := parseSourceTerm(entry.Term); ok && stored {
				sources = append(sources, source)
			}
		}
	})
	return sources, err
}

func hasDocuments(ctx context.Context, reader indexapi.IndexReader, source string) (bool, error) {
	documents, err := reader.TermFieldReader(ctx, []byte(source), sourceField, false, false, false)
	if err != nil {
		return false, err
	}
	defer release(documents)
	first, err := documents.Next(nil)
	return first != nil, err
}
