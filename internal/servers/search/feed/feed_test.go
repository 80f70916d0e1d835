package feed_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

var (
	pods       = objectcachetest.Pods
	configMaps = objectcachetest.ConfigMaps
	nodes      = objectcachetest.Nodes
)

// pass advances the test's fake clock by duration, and lets everything happen that is due by then.
func pass(duration time.Duration) {
	<-time.After(duration)
	synctest.Wait()
}

// settle is long enough for all retries and comparisons.
const settle = 3 * time.Hour

func TestFeed(t *testing.T) {
	tests := map[string]func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink){
		"objects that exist before the start are stored": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 30)
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			checkEqual(t, cache, sink)
			if sink.maxBatch > limits.BatchObjects {
				t.Errorf("a batch has %d changes", sink.maxBatch)
			}
		},
		"changes are stored without delay": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			_, stop := start(t, cache, sink)
			defer stop()
			putMany(cache, "east", 3)
			pass(time.Second)
			cache.Put("east", newObject(pods, "new"))
			synctest.Wait()
			checkEqual(t, cache, sink)
			cache.Delete("east", newObject(pods, "new"))
			synctest.Wait()
			checkEqual(t, cache, sink)
		},
		"a restart without changes writes nothing": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 30)
			_, stop := start(t, cache, sink)
			synctest.Wait()
			stop()
			before := sink.calls()
			_, stop = start(t, cache, sink)
			defer stop()
			pass(settle)
			if calls := sink.calls() - before; calls != 0 {
				t.Errorf("Apply was called %d times", calls)
			}
		},
		"objects that were deleted while the feed did not run are removed": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			synctest.Wait()
			stop()
			cache.Delete("east", newObject(pods, "pod-2"))
			_, stop = start(t, cache, sink)
			defer stop()
			synctest.Wait()
			checkEqual(t, cache, sink)
		},
		"objects of a source that was not listed yet stay": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			sink.objects[feed.ID{Cluster: "east", UID: "a"}] = stored{source: objectcache.Source{
				Cluster: "east", Kind: pods.GroupVersionKind, Resource: pods.Resource, Namespaced: true}}
			cache.AddCluster("east", pods)
			_, stop := start(t, cache, sink)
			defer stop()
			pass(settle)
			if len(sink.contents()) != 1 {
				t.Errorf("the sink has %v", sink.contents())
			}
			cache.List("east", pods, "")
			pass(time.Minute)
			if len(sink.contents()) != 0 {
				t.Errorf("after an empty list the sink has %v", sink.contents())
			}
		},
		"objects of a removed cluster and of a removed kind are removed": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			putMany(cache, "west", 5)
			cache.Put("west", newObject(nodes, "n"))
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			cache.RemoveCluster("east", pods)
			cache.RemoveKind(nodes.GroupVersionKind)
			pass(time.Minute)
			checkEqual(t, cache, sink)
			if len(sink.contents()) != 5 {
				t.Errorf("the sink has %d objects", len(sink.contents()))
			}
		},
		"a feed that ends soon after the removal of its clusters removes nothing": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			putMany(cache, "west", 5)
			_, stop := start(t, cache, sink)
			synctest.Wait()
			cache.RemoveCluster("east", pods)
			sink.setWanted("west", false)
			pass(5 * time.Second)
			stop()
			if got := len(sink.contents()); got != 10 {
				t.Errorf("the sink has %d objects", got)
			}
		},
		"a removed cluster that comes back with other objects is compared": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			cache.RemoveCluster("east", pods)
			cache.Put("east", newObject(pods, "other"))
			pass(time.Minute)
			checkEqual(t, cache, sink)
		},
		"objects of a cluster that the sink does not want any more are removed, and come back": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			for _, wanted := range []bool{false, true} {
				sink.setWanted("east", wanted)
				pass(time.Minute)
				checkEqual(t, cache, sink)
			}
		},
		"a new kind is picked up": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			cache.AddKind(objectcachetest.Deployments)
			cache.Put("east", newObject(objectcachetest.Deployments, "web"))
			pass(time.Minute)
			checkEqual(t, cache, sink)
		},
		"a loss of data that the sink reports is repaired at once": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			sink.loseData(func(feed.ID) bool { return false })
			synctest.Wait()
			checkEqual(t, cache, sink)
		},
		"a loss of data that the sink does not report is repaired by a regular comparison": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			sink.mu.Lock()
			clear(sink.objects)
			sink.mu.Unlock()
			pass(settle)
			checkEqual(t, cache, sink)
		},
		"a failing source delays neither other clusters nor other kinds": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			sink.isBroken = func(source objectcache.Source) bool { return source.Cluster == "east" && source.Kind.Kind == "Pod" }
			putMany(cache, "east", 5)
			putMany(cache, "west", 5)
			cache.Put("east", newObject(configMaps, "a"))
			f, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			putMany(cache, "west", 9)
			cache.Put("east", newObject(configMaps, "b"))
			synctest.Wait()
			if got := len(sink.contents()); got != 11 {
				t.Errorf("the sink has %d objects", got)
			}
			state := f.State()
			if !errors.Is(state.Err, errInjected) || state.Since.IsZero() || state.Behind != 1 || state.Clusters["west"].Err != nil || state.Clusters["east"].Err == nil {
				t.Errorf("state: %+v", state)
			}
			pass(time.Minute)
			if lag := f.State().Lag; lag < time.Minute {
				t.Errorf("the lag is %s", lag)
			}
			sink.mu.Lock()
			sink.isBroken = nil
			sink.mu.Unlock()
			pass(time.Minute)
			checkEqual(t, cache, sink)
			if state := f.State(); state.Err != nil || state.Lag != 0 || state.Behind != 0 {
				t.Errorf("state after the recovery: %+v", state)
			}
		},
		"a sink that hangs ends with the feed, and the changes are found later": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			sink.hang = make(chan struct{})
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			pass(time.Minute)
			stop()
			sink.hang = nil
			_, stop = start(t, cache, sink)
			defer stop()
			synctest.Wait()
			checkEqual(t, cache, sink)
		},
		"changes that the log lost are found by comparison": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 5)
			_, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			hang := make(chan struct{})
			sink.mu.Lock()
			sink.hang = hang
			sink.mu.Unlock()
			for i := range 100 {
				cache.Put("east", newObject(pods, fmt.Sprintf("new-%d", i)))
				cache.Delete("east", newObject(pods, fmt.Sprintf("pod-%d", i%5)))
				synctest.Wait()
			}
			sink.mu.Lock()
			sink.hang = nil
			sink.mu.Unlock()
			close(hang)
			synctest.Wait()
			checkEqual(t, cache, sink)
		},
		"an object without a UID and two objects with one UID are stored once": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			for _, name := range []string{"a", "b"} {
				object := newObject(pods, name)
				object.SetUID("same")
				cache.Put("east", object)
			}
			_, stop := start(t, cache, sink)
			synctest.Wait()
			if len(sink.contents()) != 1 {
				t.Errorf("the sink has %v", sink.contents())
			}
			stop()
			before := sink.calls()
			_, stop = start(t, cache, sink)
			defer stop()
			pass(settle)
			if sink.calls() != before {
				t.Errorf("a restart wrote")
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, objectcachetest.NewWithOptions(t, objectcache.Options{LogEvents: 8}, pods, configMaps, nodes), newMemorySink())
			})
		})
	}
}

func putMany(cache *objectcachetest.Cache, cluster string, count int) {
	for i := range count {
		cache.Put(cluster, newObject(pods, fmt.Sprintf("pod-%d", i)))
	}
}

// TestFeedEqualsCacheAfterFaults randomly changes the cache, makes the sink fail and lose data, and
// kills the feed. At the end, the sink is equal to the cache, and a restart writes nothing.
func TestFeedEqualsCacheAfterFaults(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testRandomFaults(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func testRandomFaults(t *testing.T, random *rand.Rand) {
	cache := objectcachetest.NewWithOptions(t, objectcache.Options{LogEvents: 8 + random.IntN(50)}, pods, configMaps, nodes)
	sink := newMemorySink()
	sink.failures = rand.New(rand.NewPCG(random.Uint64(), 2))
	_, stop := start(t, cache, sink)
	for range 300 {
		changeAtRandom(random, cache, sink)
		switch random.IntN(20) {
		case 0:
			stop()
			for range random.IntN(30) {
				changeAtRandom(random, cache, sink)
			}
			_, stop = start(t, cache, sink)
		case 1, 2:
			pass(time.Duration(random.Int64N(int64(time.Minute))))
		case 3:
			sink.loseData(func(feed.ID) bool { return random.IntN(2) == 0 })
		case 4:
			sink.mu.Lock()
			sink.failures = nil
			if random.IntN(2) == 0 {
				sink.failures = rand.New(rand.NewPCG(random.Uint64(), 2))
			}
			sink.mu.Unlock()
		}
	}
	sink.mu.Lock()
	sink.failures = nil
	sink.mu.Unlock()
	pass(time.Minute)
	checkEqual(t, cache, sink)
	stop()
	before := sink.calls()
	f, stop := start(t, cache, sink)
	defer stop()
	pass(settle)
	checkEqual(t, cache, sink)
	if calls := sink.calls() - before; calls != 0 {
		t.Errorf("a restart called Apply %d times", calls)
	}
	if state := f.State(); state.Err != nil || state.Lag != 0 {
		t.Errorf("state: %+v", state)
	}
}

// changeAtRandom randomly changes the cache or the wanted clusters once.
func changeAtRandom(random *rand.Rand, cache *objectcachetest.Cache, sink *memorySink) {
	kinds := []objectcachetest.Kind{pods, configMaps, nodes}
	kind, cluster := kinds[random.IntN(len(kinds))], fmt.Sprintf("m%d", random.IntN(3))
	object := newObject(kind, fmt.Sprintf("o%d", random.IntN(6)))
	if cache.KindOf(kind.GroupVersionKind) == nil {
		cache.AddKind(kind)
	}
	switch n := random.IntN(40); {
	case n < 20:
		if random.IntN(4) == 0 { // the object was deleted and created again
			object.SetUID(types.UID("other-" + kind.Kind))
			object.SetName("single")
		}
		cache.Put(cluster, object)
	case n < 30:
		cache.Delete(cluster, object)
	case n < 33:
		var objects []*unstructured.Unstructured
		for i := range random.IntN(6) {
			objects = append(objects, newObject(kind, fmt.Sprintf("o%d", i)))
		}
		cache.List(cluster, kind, "", objects...)
	case n < 35:
		if cache.KindOf(kind.GroupVersionKind).Snapshot().Cluster(cluster) != nil {
			cache.RemoveCluster(cluster, kind)
		}
	case n < 36:
		cache.SetState(cluster, kind, objectcache.Stale, "not ready")
	case n < 37:
		cache.AddCluster(cluster+"-waiting", kind)
	case n < 38:
		for _, objects := range cache.KindOf(kind.GroupVersionKind).Snapshot().Clusters() {
			cache.RemoveCluster(objects.Source().Cluster, kind)
		}
		cache.RemoveKind(kind.GroupVersionKind)
	default:
		sink.setWanted(cluster, random.IntN(2) == 0)
	}
}
