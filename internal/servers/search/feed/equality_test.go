package feed_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

func (s *memorySink) setHang(hang chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = hang
}

func TestIsEqual(t *testing.T) {
	eastPods := objectcache.Source{Cluster: "east", Kind: pods.GroupVersionKind}
	expect := func(t *testing.T, f *feed.Feed, want bool, when string) {
		t.Helper()
		synctest.Wait()
		if got := f.IsEqual(eastPods); got != want {
			t.Errorf("%s: the source is equal: %t", when, got)
		}
	}
	tests := map[string]func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink){
		"a source that was not listed is not equal": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			cache.AddCluster("east", pods)
			f, stop := start(t, cache, sink)
			defer stop()
			expect(t, f, false, "before the list")
			putMany(cache, "east", 3)
			pass(time.Second)
			expect(t, f, true, "after the list")
			cache.RemoveCluster("east", pods)
			expect(t, f, false, "after the removal of the cluster")
		},
		"a source is not equal during its first comparison": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 3)
			hang := make(chan struct{})
			sink.setHang(hang)
			f, stop := start(t, cache, sink)
			defer stop()
			expect(t, f, false, "before the comparison ended")
			sink.setHang(nil)
			close(hang)
			expect(t, f, true, "after the comparison")
		},
		"a source with a change that is not stored in time is not equal": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 3)
			f, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			hang := make(chan struct{})
			sink.setHang(hang)
			cache.Put("east", newObject(pods, "new"))
			pass(time.Second)
			expect(t, f, true, "after one second")
			pass(3 * time.Second)
			expect(t, f, false, "after four seconds")
			sink.setHang(nil)
			close(hang)
			expect(t, f, true, "after the change was stored")
		},
		"a source with a change that is not read in time is not equal": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 3)
			putMany(cache, "west", 3)
			f, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			hang := make(chan struct{})
			sink.setHang(hang)
			cache.Put("west", newObject(pods, "new"))
			synctest.Wait()
			cache.Put("east", newObject(pods, "new"))
			pass(4 * time.Second)
			expect(t, f, false, "while the change of another cluster hangs")
			sink.setHang(nil)
			close(hang)
			expect(t, f, true, "after the changes were stored")
		},
		"a source whose write failed is not equal": func(t *testing.T, cache *objectcachetest.Cache, sink *memorySink) {
			putMany(cache, "east", 3)
			f, stop := start(t, cache, sink)
			defer stop()
			synctest.Wait()
			sink.mu.Lock()
			sink.isBroken = func(objectcache.Source) bool { return true }
			sink.mu.Unlock()
			cache.Put("east", newObject(pods, "new"))
			expect(t, f, false, "after the failure")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, objectcachetest.New(t, pods), newMemorySink()) })
		})
	}
}

func TestObjectsAreStoredAgainAfterTheirVersionsRestarted(t *testing.T) {
	for name, logEvents := range map[string]int{"the log has the restart": 100, "the log lost the restart": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, sink := objectcachetest.NewWithOptions(t, objectcache.Options{LogEvents: logEvents}, pods), newMemorySink()
				list := func(version, value string) {
					var objects []*unstructured.Unstructured
					for _, name := range []string{"a", "b"} {
						object := newObject(pods, name)
						object.SetResourceVersion("50")
						object.SetLabels(map[string]string{"value": value})
						objects = append(objects, object)
					}
					cache.List("east", pods, version, objects...)
				}
				list("100", "before")
				_, stop := start(t, cache, sink)
				defer stop()
				synctest.Wait()
				list("60", "after")
				pass(time.Minute)
				for id, object := range sink.values() {
					if got := object.Labels().Get("value"); got != "after" {
						t.Errorf("%s has the content of %q", id.UID, got)
					}
				}
			})
		})
	}
}
