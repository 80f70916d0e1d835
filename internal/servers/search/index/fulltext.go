package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// DefaultBatchBytes is the default of Options.BatchBytes.
const DefaultBatchBytes = 16 << 20

// Options configure a FullText index.
type Options struct {
	// Directory is the directory of the index. It is created if needed. Only one process can use it.
	Directory string
	// Cache is the cache whose objects are indexed.
	Cache *objectcache.Cache
	// BatchBytes limits the estimated memory of the documents that are indexed at once. One document
	// is always allowed. The default is 16 MiB.
	BatchBytes int
	// ApplyTimeout limits the time until a batch is on disk. The default is 2 minutes.
	ApplyTimeout time.Duration
	// Logger gets one line for each index that is replaced.
	Logger logr.Logger
}

// FullText is an index of the words of all objects on disk. It is a Searcher and a feed.Sink.
//
// A search uses the index for the sources that are equal to the cache, see SetProgress, and reads the
// cache for the others. A change is found after the feed stored it.
type FullText struct {
	options Options
	memory  *Memory
	lock    *os.File

	mu       sync.Mutex
	progress Progress
	// current is nil after Close.
	current *generation
	// next is the number of the next generation.
	next    int
	changed chan struct{}
	closing sync.WaitGroup
}

var (
	_ Searcher      = &FullText{}
	_ feed.Sink     = &FullText{}
	_ feed.Notifier = &FullText{}
)

// Progress knows which sources the index has. *feed.Feed implements it.
type Progress interface {
	// IsEqual reports whether the index has all objects of a source, except changes of the last seconds.
	IsEqual(source objectcache.Source) bool
}

// SetProgress makes searches use the index. Before, they read the cache.
func (f *FullText) SetProgress(progress Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress = progress
}

// errClosed is returned by an index that was closed.
var errClosed = errors.New("the full-text index is closed")

// Open opens the index of a directory. An index that is damaged or incompatible is replaced by an
// empty one. The caller must call Close.
func Open(options Options) (*FullText, error) {
	if options.BatchBytes == 0 {
		options.BatchBytes = DefaultBatchBytes
	}
	if options.ApplyTimeout == 0 {
		options.ApplyTimeout = 2 * time.Minute
	}
	if err := os.MkdirAll(options.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the full-text index: %w", err)
	}
	lock, err := lockDirectory(options.Directory)
	if err != nil {
		return nil, err
	}
	f := &FullText{options: options, memory: NewMemory(options.Cache), lock: lock, changed: make(chan struct{})}
	if err := f.openLatest(); err != nil {
		lock.Close()
		return nil, err
	}
	return f, nil
}

// lockDirectory makes sure that no other process uses the directory.
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

// Close closes the index after the running searches ended.
func (f *FullText) Close() error {
	f.mu.Lock()
	last := f.current
	f.current = nil
	f.mu.Unlock()
	if last == nil {
		return nil
	}
	f.closing.Wait()
	err := last.close()
	f.lock.Close()
	return err
}

// acquire returns the current generation. The caller must call release.
func (f *FullText) acquire() (g *generation, release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		return nil, nil, errClosed
	}
	g = f.current
	g.users.Add(1)
	return g, g.users.Done, nil
}

// replace replaces a damaged generation by an empty one, and makes the feed store all objects again.
func (f *FullText) replace(damaged *generation, reason error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != damaged {
		return
	}
	f.options.Logger.Error(reason, "Replacing the damaged full-text index by an empty one", "directory", damaged.directory)
	empty, err := openGeneration(f.nextDirectory())
	if err != nil {
		f.options.Logger.Error(err, "Creating an empty full-text index", "directory", f.options.Directory)
		return
	}
	f.current = empty
	close(f.changed)
	f.changed = make(chan struct{})
	f.closing.Go(func() {
		if err := damaged.close(); err != nil {
			f.options.Logger.V(1).Info("Closing a damaged full-text index", "reason", err.Error())
		}
		os.RemoveAll(damaged.directory)
	})
}

// Changed implements feed.Notifier.
func (f *FullText) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Name implements feed.Sink.
func (f *FullText) Name() string { return "the full-text index" }

// Wants implements feed.Sink: all sources are indexed.
func (f *FullText) Wants(objectcache.Source) bool { return true }

// protected calls a function with the current generation.
func (f *FullText) protected(operation string, call func(g *generation) error) error {
	g, release, err := f.acquire()
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	defer release()
	return f.guard(g, operation, func() error { return call(g) })
}

// guard calls a function that uses the library. A panic in the library, or a fault of a mapped file,
// means that the index is damaged: it is replaced.
func (f *FullText) guard(g *generation, operation string, call func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	returned := false
	defer func() {
		if returned {
			return
		}
		err = fmt.Errorf("%s: the full-text index is damaged: %v: retry in a few seconds", operation, recover())
		f.replace(g, err)
	}()
	err = call()
	returned = true
	return err
}

// Apply implements feed.Sink.
func (f *FullText) Apply(ctx context.Context, changes []feed.Change) error {
	return f.protected("writing the full-text index", func(g *generation) error {
		return f.apply(ctx, g, changes)
	})
}
