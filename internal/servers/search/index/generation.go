package index

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/blevesearch/bleve/v2/index/scorch"
	indexapi "github.com/blevesearch/bleve_index_api"
)

// format is the number of the format of documents. A change of fields, words or terms needs another
// number, so that an index of another release is replaced.
const format = 2

// generationPrefix begins the names of the directories of indexes. The format and a counter follow.
const generationPrefix = "index-"

// persisterDelay is the time in milliseconds for which the library collects changes in memory before
// it writes them to disk. It also limits the rate of retries if the disk is full.
const persisterDelay = 100

// generation is one index of the library. A damaged generation is replaced by the next one.
type generation struct {
	directory string
	index     indexapi.Index
	queue     *indexapi.AnalysisQueue
	// users counts the calls that use the index.
	users sync.WaitGroup
	// overdue counts the batches that were not written in time.
	overdue atomic.Int32
	// isFailing is true after a write that failed, until a probe shows that all changes are on disk.
	isFailing atomic.Bool
}

// openLatest opens the existing index, or creates an empty one. Other indexes are removed.
func (f *FullText) openLatest() error {
	existing, err := f.generations()
	if err != nil {
		return err
	}
	for len(existing) > 0 {
		latest := existing[len(existing)-1]
		existing = existing[:len(existing)-1]
		if f.current != nil {
			os.RemoveAll(latest)
			continue
		}
		if f.current, err = openExisting(latest); err != nil {
			f.options.Logger.Error(err, "Replacing the full-text index by an empty one, because it cannot be used", "directory", latest)
			os.RemoveAll(latest)
		}
	}
	if f.current == nil {
		f.current, err = openGeneration(f.nextDirectory())
	}
	return err
}

// generations returns the directories of indexes, from the oldest to the latest.
func (f *FullText) generations() ([]string, error) {
	entries, err := os.ReadDir(f.options.Directory)
	if err != nil {
		return nil, fmt.Errorf("reading the directory of the full-text index: %w", err)
	}
	var numbers []int
	directories := map[int]string{}
	for _, entry := range entries {
		name, found := strings.CutPrefix(entry.Name(), generationPrefix)
		_, counter, _ := strings.Cut(name, "-")
		number, err := strconv.Atoi(counter)
		if !found || err != nil {
			continue
		}
		f.next = max(f.next, number+1)
		numbers = append(numbers, number)
		directories[number] = filepath.Join(f.options.Directory, entry.Name())
	}
	slices.Sort(numbers)
	sorted := make([]string, 0, len(numbers))
	for _, number := range numbers {
		sorted = append(sorted, directories[number])
	}
	return sorted, nil
}

func (f *FullText) nextDirectory() string {
	name := fmt.Sprintf("%s%d-%d", generationPrefix, format, f.next)
	f.next++
	return filepath.Join(f.options.Directory, name)
}

// openExisting opens an index after it checked its files.
func openExisting(directory string) (*generation, error) {
	if !strings.HasPrefix(filepath.Base(directory), fmt.Sprintf("%s%d-", generationPrefix, format)) {
		return nil, fmt.Errorf("another release wrote it: this release has format %d", format)
	}
	segments, err := filepath.Glob(filepath.Join(directory, "*.zap"))
	if err != nil {
		return nil, err
	}
	for _, segment := range segments {
		if err := checkSegment(segment); err != nil {
			return nil, err
		}
	}
	if err := checkBolt(filepath.Join(directory, boltName)); err != nil {
		return nil, err
	}
	return openGeneration(directory)
}

// checkSegment compares the checksum of a file with its content, because the library maps files into
// memory and does not check them.
func checkSegment(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("checking the full-text index: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("checking the full-text index: %w", err)
	}
	content := info.Size() - crc32.Size
	if content < 0 {
		return fmt.Errorf("%s is too short", path)
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, file, content); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	var stored [crc32.Size]byte
	if _, err := io.ReadFull(file, stored[:]); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if string(stored[:]) != string(sum.Sum(nil)) {
		return fmt.Errorf("%s has a wrong checksum", path)
	}
	return nil
}

// openGeneration opens or creates an index of the library.
func openGeneration(directory string) (g *generation, err error) {
	// The library maps files into memory. A read beyond the end of a file must not end the process.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	returned := false
	queue := indexapi.NewAnalysisQueue(1)
	defer func() {
		if !returned {
			err = fmt.Errorf("opening the full-text index: %v", recover())
		}
		if err != nil {
			queue.Close()
		}
	}()
	index, err := scorch.NewScorch(scorch.Name, map[string]any{
		"path":         directory,
		"bolt_timeout": "5s",
		"scorchPersisterOptions": map[string]any{
			"PersisterNapTimeMSec": persisterDelay,
		},
	}, queue)
	if err == nil {
		err = index.Open()
	}
	returned = true
	if err != nil {
		return nil, fmt.Errorf("opening the full-text index: %w", err)
	}
	return &generation{directory: directory, index: index, queue: queue}, nil
}

// close closes the index after its users ended.
func (g *generation) close() error {
	g.users.Wait()
	err := g.index.Close()
	g.queue.Close()
	if errors.Is(err, scorch.ErrClosed) {
		return nil
	}
	return err
}

// release closes a reader of the library. The library returns no errors of readers.
func release(reader io.Closer) { reader.Close() }
