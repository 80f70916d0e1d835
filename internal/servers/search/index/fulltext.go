package index

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/go-logr/logr"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// indexFormat is the version of the document format. It must change whenever the documents' fields,
// words or facts change, so that an index that another release wrote is not used.
const indexFormat = 3

// While the index is open, it has the name openName. Close renames it to closedName. After a crash, or
// after an upgrade to another format, no index has the name closedName, so an empty index is created.
const (
	indexPattern = "index-*"
	openName     = "index-open"
)

var closedName = fmt.Sprintf("index-%d", indexFormat)

// persistInterval is how long bleve collects changes before it writes them to disk, in milliseconds. It
// also limits the rate at which failed writes are retried.
const persistInterval = 100

// Options configure a FullText index.
type Options struct {
	// Directory is the directory that contains the index. It is created if needed. Only one process can
	// use it.
	Directory string
	// Cache is the cache whose objects are indexed.
	Cache *objectcache.Cache
	// WriteTimeout limits the time until changes are on disk. Default: 2 minutes.
	WriteTimeout time.Duration
	// Logger receives one line for each index that is deleted.
	Logger logr.Logger
}

// FullText is a bleve index of all objects' words. It is a Searcher and a feed.Sink.
//
// A search uses the index for the sources that are equal to the cache, see SetProgress, and reads the
// other sources from the cache. A search may miss changes in the last seconds.
type FullText struct {
	options  Options
	index    bleve.Index
	progress atomic.Pointer[Progress]
	// hasUnwritten is true after a failed write, until all changes are on disk.
	hasUnwritten atomic.Bool
	close        func() error
}

var (
	_ Searcher  = &FullText{}
	_ feed.Sink = &FullText{}
)

// Progress knows which sources are indexed. *feed.Feed implements it.
type Progress interface {
	// IsEqual reports whether the index has all of the source's objects, except for changes in the last
	// seconds.
	IsEqual(source objectcache.Source) bool
}

// SetProgress makes searches use the index. Before it is called, searches read the cache.
func (f *FullText) SetProgress(progress Progress) { f.progress.Store(&progress) }

// Open opens the index in the directory, or creates an empty one. The caller must call Close.
func Open(options Options) (*FullText, error) {
	if options.WriteTimeout == 0 {
		options.WriteTimeout = 2 * time.Minute
	}
	if err := os.MkdirAll(options.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the full-text index: %w", err)
	}
	lock, err := lockDirectory(options.Directory)
	if err != nil {
		return nil, err
	}
	opened, err := openOrCreate(options)
	if err != nil {
		lock.Close()
		return nil, err
	}
	f := &FullText{options: options, index: opened}
	f.close = sync.OnceValue(func() error {
		defer lock.Close()
		if err := opened.Close(); err != nil || f.hasUnwritten.Load() {
			return err
		}
		return os.Rename(filepath.Join(options.Directory, openName), filepath.Join(options.Directory, closedName))
	})
	return f, nil
}

// Close closes the index after the running searches and writes have ended.
func (f *FullText) Close() error { return f.close() }

// lockDirectory returns a lock on the directory, or an error if another process uses the directory.
func lockDirectory(directory string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(directory, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the full-text index: %w", err)
	}
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return lock, nil
	}
	lock.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("the full-text index in %s is used by another process: stop that process, or use another directory", directory)
	}
	return nil, fmt.Errorf("locking the full-text index in %s: %w", directory, err)
}

// openOrCreate opens the index that the last process closed, or creates an empty one. It deletes all
// other indexes in the directory.
func openOrCreate(options Options) (bleve.Index, error) {
	existing, err := filepath.Glob(filepath.Join(options.Directory, indexPattern))
	if err != nil {
		return nil, fmt.Errorf("listing full-text indexes: %w", err)
	}
	path := filepath.Join(options.Directory, openName)
	for _, found := range existing {
		if filepath.Base(found) == closedName {
			continue
		}
		options.Logger.Info("Deleting a full-text index, because it was not closed or has another format", "directory", found)
		err = errors.Join(err, os.RemoveAll(found))
	}
	if err != nil {
		return nil, fmt.Errorf("deleting an unusable full-text index: %w", err)
	}
	err = os.Rename(filepath.Join(options.Directory, closedName), path)
	if err == nil {
		var opened bleve.Index
		if opened, err = openExisting(path); err == nil {
			return opened, nil
		}
	}
	if !errors.Is(err, os.ErrNotExist) {
		options.Logger.Error(err, "Deleting a full-text index, because it cannot be opened", "directory", path)
	}
	return createIndex(path)
}

// openExisting opens an index. bleve maps files into memory, so a damaged file can cause a panic, which
// is converted to an error.
func openExisting(path string) (opened bleve.Index, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("opening the full-text index: %v", reason)
		}
	}()
	return bleve.Open(path)
}

func createIndex(path string) (bleve.Index, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("deleting an unusable full-text index: %w", err)
	}
	schema, err := newMapping()
	if err != nil {
		return nil, err
	}
	created, err := bleve.NewUsing(path, schema, scorch.Name, scorch.Name, map[string]any{
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": persistInterval},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the full-text index: %w", err)
	}
	// Restrict access, because bleve creates this file readable for all users.
	if err := os.Chmod(filepath.Join(path, "index_meta.json"), 0o600); err != nil {
		return nil, fmt.Errorf("creating the full-text index: %w", errors.Join(err, created.Close()))
	}
	return created, nil
}
