package index

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/go-logr/logr"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

// crashDirectory is the environment variable that makes the test program write an index until it is
// killed.
const crashDirectory = "KARMADA_TEST_CRASH_DIRECTORY"

// TestWriterThatIsKilled is the program that TestKilledProcessLeavesAnIndex kills.
func TestWriterThatIsKilled(t *testing.T) {
	directory := os.Getenv(crashDirectory)
	if directory == "" {
		return
	}
	cache := newCache(t)
	f, err := Open(Options{Directory: directory, Cache: cache.Cache, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		cache.Put("m1", newObject(objectcachetest.ConfigMaps, "crash", fmt.Sprintf("config-%d", i), map[string]any{"data": map[string]any{"key": "nginx"}}))
		add(t, f, cache.Cache)
		fmt.Println("stored", i)
	}
}

func TestKilledProcessLeavesAnIndex(t *testing.T) {
	directory := t.TempDir()
	for range 2 {
		program, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		writer := exec.CommandContext(t.Context(), program, "-test.run=^TestWriterThatIsKilled$")
		writer.Env = append(os.Environ(), crashDirectory+"="+directory)
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 3 {
			if !lines.Scan() {
				t.Fatal("the writer ended")
			}
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = writer.Wait() // it was killed
	}
	cache := newCache(t)
	f := openIndex(t, directory, cache.Cache)
	stored := 0
	source := *cache.KindOf(objectcachetest.Nodes.GroupVersionKind).Snapshot().Cluster("m1").Source()
	if err := f.Stored(t.Context(), source, func(feed.ID, string) error { stored++; return nil }); err != nil {
		t.Fatal(err)
	}
	if stored != 1 {
		t.Errorf("after the process was killed, the index has %d of 1 Nodes", stored)
	}
	store(t, f, cache.Cache)
	if got := verified(t.Context(), t, f, "nginx", Cursor{}, 100); len(got) != 12 {
		t.Errorf("the index finds %d of 12 objects: %v", len(got), got)
	}
}
