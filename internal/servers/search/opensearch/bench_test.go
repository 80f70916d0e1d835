package opensearch_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/opensearch"
)

const (
	benchClusters = 20
	// benchPods is the number of Pods in each cluster.
	benchPods = 5000
)

// newBenchCache returns a cache with 100 000 Pods of 3 KiB in 20 clusters.
func newBenchCache(b *testing.B) *objectcachetest.Cache {
	cache := objectcachetest.New(b, pods)
	for c := range benchClusters {
		for i := range benchPods {
			cache.Put(fmt.Sprintf("member-%d", c), benchPod(c, i))
		}
	}
	return cache
}

func benchPod(cluster, i int) *unstructured.Unstructured {
	pod := newObject(pods, fmt.Sprintf("web-%d-%d", cluster, i))
	pod.SetLabels(map[string]string{"app": "web", "pod-template-hash": fmt.Sprintf("%x", i*7919)})
	var env []any
	for e := range 30 {
		env = append(env, map[string]any{"name": fmt.Sprintf("SETTING_%d", e), "value": strings.Repeat(fmt.Sprint(i%97+e), 12)})
	}
	pod.Object["spec"] = map[string]any{"nodeName": fmt.Sprintf("node-%d", i%100), "containers": []any{
		map[string]any{"name": "web", "image": "docker.io/library/nginx:1.19", "env": env},
	}}
	pod.Object["status"] = map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.%d.%d.%d", cluster, i/250, i%250)}
	return pod
}

func benchSelection(node *fakeNode) map[string]opensearch.Backend {
	selected := map[string]opensearch.Backend{}
	for c := range benchClusters {
		selected[fmt.Sprintf("member-%d", c)] = backend(node)
	}
	return selected
}

// newBenchSetup returns a setup with the default limits.
func newBenchSetup(b *testing.B, cache *objectcachetest.Cache) *setup {
	s := newSetup(b)
	s.cache = cache
	s.limits.RetryMin, s.limits.CheckEvery, s.limits.PageSize, s.limits.Feed = 0, 0, 0, feed.Limits{}
	return s
}

// BenchmarkStore stores 100 000 Pods in an empty server of the same process, and then compares them
// after a restart.
func BenchmarkStore(b *testing.B) {
	cache := newBenchCache(b)
	for b.Loop() {
		s := newBenchSetup(b, cache)
		node := s.server.AddNode(nil)
		start := time.Now()
		stop := s.run(benchSelection(node))
		awaitStored(b, s)
		b.ReportMetric(benchClusters*benchPods/time.Since(start).Seconds(), "stored/s")
		stop()
		written := s.server.Written()
		start = time.Now()
		stop = s.run(benchSelection(node))
		awaitStored(b, s)
		b.ReportMetric(time.Since(start).Seconds(), "s/restart")
		stop()
		if s.server.Written() != written {
			b.Errorf("a restart wrote %d documents", s.server.Written()-written)
		}
	}
}

func awaitStored(b *testing.B, s *setup) {
	b.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	for {
		states := s.manager.States()
		if len(states) == 1 && len(states[0].Feed.Clusters) == benchClusters && states[0].Feed.Behind == 0 && states[0].Feed.Err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("state: %+v", states)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// BenchmarkMemoryWhileDown measures the memory of the feed for 20 seconds in which OpenSearch is down
// or hangs, and 1000 of 100 000 Pods change in each second.
func BenchmarkMemoryWhileDown(b *testing.B) {
	cache := newBenchCache(b)
	cases := map[string]func(*fakeServer, *fakeNode){
		"refused": func(_ *fakeServer, node *fakeNode) { node.Stop() },
		"hangs": func(server *fakeServer, _ *fakeNode) {
			server.SetFaults(fakeFaults{Hang: true})
		},
		"full": func(server *fakeServer, _ *fakeNode) {
			server.SetFaults(fakeFaults{Full: true})
		},
	}
	for name, breakServer := range cases {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				without := peakHeap(b, cache, func() {})
				s := newBenchSetup(b, cache)
				node := s.server.AddNode(nil)
				breakServer(s.server, node)
				stop := s.run(benchSelection(node))
				with := peakHeap(b, cache, func() { s.manager.States() })
				stop()
				b.ReportMetric(float64(with-without)/(1<<20), "MiB-more")
				b.ReportMetric(float64(without)/(1<<20), "MiB-cache")
			}
		})
	}
}

// peakHeap changes Pods for 20 seconds and returns the largest live heap.
func peakHeap(b *testing.B, cache *objectcachetest.Cache, each func()) (peak int64) {
	b.Helper()
	for second := range 20 {
		begin := time.Now()
		for i := range 1000 {
			cache.Put(fmt.Sprintf("member-%d", i%benchClusters), benchPod(i%benchClusters, (second*1000+i)%benchPods))
		}
		each()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		peak = max(peak, int64(stats.HeapAlloc))
		<-time.After(time.Second - time.Since(begin))
	}
	return peak
}
