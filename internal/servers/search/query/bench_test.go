package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

// discard is a client that counts bytes.
type discard struct {
	header http.Header
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(b []byte) (int, error) { d.bytes += len(b); return len(b), nil }

// BenchmarkServe measures requests for 100 000 Pods of 3 KiB in 20 clusters, with the full-text index.
func BenchmarkServe(b *testing.B) {
	cache := objectcachetest.New(b, objectcachetest.Pods)
	random := rand.New(rand.NewPCG(1, 2))
	const pods = 100_000
	for i := range pods {
		cache.Put(fmt.Sprintf("member-%02d", i%20), objectcachetest.BenchPod(random, i))
	}
	fullText, err := index.Open(index.Options{Directory: b.TempDir(), Cache: cache.Cache, Logger: logr.Discard()})
	if err != nil {
		b.Fatal(err)
	}
	defer fullText.Close()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	follower := feed.New(cache.Cache, fullText, feed.Limits{})
	fullText.SetProgress(follower)
	go func() { defer close(done); follower.Run(ctx) }()
	defer func() { cancel(); <-done }()
	waitUntilStored(b, cache, fullText)
	handler := New(Options{Cache: cache.Cache, Searcher: fullText, Permissions: &fakePermissions{}, Now: func() time.Time { return now }})
	for name, query := range map[string]string{
		"a rare word": "rareword", "a word in every object": "nginx", "Pods that do not run": "kind:Pod phase!=Running",
		"an image in a cluster": "image:nginx:1.19 cluster=member-07", "a label": "label.app=app-17",
	} {
		b.Run("query/"+name, func(b *testing.B) {
			serve(b, func(w http.ResponseWriter, req *http.Request) { handler.ServeQuery(w, req, alice) }, encode("q", query))
		})
	}
	b.Run("cache/all Pods", func(b *testing.B) {
		serve(b, func(w http.ResponseWriter, req *http.Request) {
			handler.ServeCache(w, req, "api/v1/pods", url.Values{}, alice)
		}, "")
	})
}

func serve(b *testing.B, handle http.HandlerFunc, query string) {
	var w discard
	for b.Loop() {
		w = discard{header: http.Header{}}
		handle(&w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/?"+query, nil))
	}
	b.ReportMetric(float64(w.bytes), "bytes/response")
	b.ReportAllocs()
}

// waitUntilStored waits until all sources' last objects are stored.
func waitUntilStored(b *testing.B, cache *objectcachetest.Cache, fullText *index.FullText) {
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		missing := 0
		for _, objects := range cache.KindOf(objectcachetest.Pods.GroupVersionKind).Snapshot().Clusters() {
			missing += objects.Len()
			if err := fullText.Stored(b.Context(), *objects.Source(), func(feed.ID, string) error { missing--; return nil }); err != nil {
				b.Fatal(err)
			}
		}
		if missing == 0 {
			return
		}
	}
}
