package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

const (
	benchClusters = 20
	benchPods     = 100_000
)

// BenchmarkSearch measures searches in 100 000 Pods of 3 KiB in 20 clusters, and prints the process's
// memory before and after it indexes them.
func BenchmarkSearch(b *testing.B) {
	cache := objectcachetest.New(b, objectcachetest.Pods)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range benchPods {
		cache.Put(fmt.Sprintf("member-%02d", i%benchClusters), objectcachetest.BenchPod(random, i))
	}
	before := residentMiB(b)
	// This resets VmHWM.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o600); err != nil {
		b.Fatal(err)
	}
	directory := b.TempDir()
	fullText := openIndex(b, directory, cache.Cache)
	began := time.Now()
	feedUntilComplete(b, cache, fullText)
	built, peak := time.Since(began), statusMiB(b, "VmHWM")
	fmt.Printf("cache: %d MiB resident; with index: %d MiB resident, peak %d MiB; built in %s; %d MiB on disk\n",
		before, residentMiB(b), peak, built.Round(time.Millisecond), diskMiB(b, directory))
	queries := map[string]string{
		"a rare word": `rareword`, "a word in one of a hundred objects": `seldom`, "a word in half of the objects": `evenly`,
		"a word in every object": `nginx`, "an image": `image:nginx:1.19`, "a word in a namespace": `nginx ns=namespace-17`,
		"a prefix": `rare*`, "no match": `missingword`, "a pattern at the end": `*areword`,
		"an excluded phase": `kind:Pod phase!=Running`, "a comparison": `restarts>3`, "an age": `age<1m`,
	}
	for name, query := range queries {
		for kind, searcher := range map[string]Searcher{"memory": NewMemory(cache.Cache), "full text": fullText} {
			if kind == "memory" && query != "nginx" {
				continue // decoding all objects takes several seconds
			}
			b.Run(name+"/"+kind, func(b *testing.B) {
				found := 0
				for b.Loop() {
					found = len(verified(b.Context(), b, searcher, query, Cursor{}, 500))
				}
				b.ReportMetric(float64(found), "matches")
			})
		}
	}
}

func feedUntilComplete(b *testing.B, cache *objectcachetest.Cache, fullText *FullText) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); feed.New(cache.Cache, fullText, feed.Limits{}).Run(ctx) }()
	defer func() { cancel(); <-done }()
	for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
		count, err := fullText.index.DocCount()
		if err != nil {
			b.Fatal(err)
		}
		if count == benchPods {
			return
		}
	}
}

func residentMiB(b *testing.B) int {
	runtime.GC()
	debug.FreeOSMemory()
	return statusMiB(b, "VmRSS")
}

// statusMiB returns the named value from this process's status, in MiB.
func statusMiB(b *testing.B, name string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("the memory of the process is only known on Linux")
	}
	kib, err := strconv.Atoi(string(regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(status)[1]))
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

func diskMiB(b *testing.B, directory string) (mib int) {
	var bytes int64
	err := filepath.Walk(directory, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return int(bytes >> 20)
}
