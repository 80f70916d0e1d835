package objectcache_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

func TestObjectsKeepTheirFields(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	tests := map[string]struct {
		uid, version string
		created      metav1.Time
		labels       map[string]string
	}{
		"a usual object":                     {"0c5a0d0e-8f6f-4a53-9b3c-6a2b1c0d9e8f", "1234", created, map[string]string{"app": "web"}},
		"a UID that is no UUID":              {"node-1", "5", created, nil},
		"a UUID in upper case":               {"0C5A0D0E-8F6F-4A53-9B3C-6A2B1C0D9E8F", "5", created, nil},
		"a UUID of zeros":                    {"00000000-0000-0000-0000-000000000000", "5", created, nil},
		"a version that is no number":        {"a", "v1-x", created, nil},
		"a version with leading zeros":       {"a", "007", created, nil},
		"a version that exceeds 64 bits":     {"a", "18446744073709551616", created, nil},
		"the largest version":                {"a", "18446744073709551615", created, nil},
		"an object without a time":           {"a", "1", metav1.Time{}, nil},
		"a label with an empty value":        {"a", "1", created, map[string]string{"empty": "", "x": "y"}},
		"a label value with many characters": {"a", "1", created, map[string]string{"long": strings.Repeat("v", 300)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
			given := configMap("one")
			given.SetUID(types.UID(test.uid))
			given.SetResourceVersion(test.version)
			given.SetCreationTimestamp(test.created)
			given.SetLabels(test.labels)
			given.SetAnnotations(map[string]string{"note": "<kept> & 'quoted'"})
			cache.List("m1", objectcachetest.ConfigMaps, "10", given)
			got := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind).Snapshot().Cluster("m1").Get("default", "one")
			if string(got.UID()) != test.uid || got.ResourceVersion() != test.version || !got.Created().Equal(test.created.Time) {
				t.Errorf("UID %q, version %q, created %s", got.UID(), got.ResourceVersion(), got.Created())
			}
			decoded, err := got.Decode()
			if err != nil {
				t.Fatal(err)
			}
			want := given.DeepCopy()
			want.SetAnnotations(map[string]string{"note": "<kept> & 'quoted'", clusterv1alpha1.CachedFromClusterAnnotation: "m1"})
			if diff := cmp.Diff(want.Object, decoded.Object); diff != "" {
				t.Errorf("decoded object (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRangesOfObjects(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	for _, key := range []string{"b/1", "a/2", "a/1", "ab/1", "b/0"} {
		namespace, name, _ := strings.Cut(key, "/")
		object := configMap(name)
		object.SetNamespace(namespace)
		cache.Put("m1", object)
	}
	objects := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind).Snapshot().Cluster("m1")
	tests := map[string]struct {
		namespace, fromNamespace, fromName string
		want                               string
	}{
		"all":                             {"", "", "", "a/1 a/2 ab/1 b/0 b/1"},
		"one namespace":                   {"a", "", "", "a/1 a/2"},
		"a namespace without objects":     {"c", "", "", ""},
		"all from a place":                {"", "a", "2", "a/2 ab/1 b/0 b/1"},
		"from a place between objects":    {"", "a", "3", "ab/1 b/0 b/1"},
		"a namespace from a place":        {"b", "b", "1", "b/1"},
		"a namespace before the place":    {"a", "b", "", ""},
		"a namespace far after the place": {"b", "a", "", "b/0 b/1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for object := range objects.From(test.namespace, test.fromNamespace, test.fromName) {
				got = append(got, object.Namespace()+"/"+object.Name())
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollowFrom(t *testing.T) {
	kind := objectcachetest.ConfigMaps
	// newCache returns a cache in which m1 was listed at version 10 and then changed up to version 13.
	newCache := func(t *testing.T) *objectcachetest.Cache {
		cache := objectcachetest.NewWithOptions(t, objectcache.Options{LogEvents: 6}, kind)
		cache.List("m1", kind, "10", configMap("a"))
		for range 3 {
			cache.Put("m1", configMap("a"))
		}
		return cache
	}
	tests := map[string]struct {
		change   func(cache *objectcachetest.Cache)
		versions map[string]string
		want     string // the error is "expired"
	}{
		"the current version gets nothing":               {nil, map[string]string{"m1": "13"}, ""},
		"an older version gets the events after it":      {nil, map[string]string{"m1": "11"}, "Modified@12 Modified@13"},
		"a version before the first list is expired":     {nil, map[string]string{"m1": "9"}, "expired"},
		"a version beyond the cache skips events":        {func(c *objectcachetest.Cache) {}, map[string]string{"m1": "20"}, ""},
		"no version gets the initial state":              {nil, nil, "Added@13"},
		"an unknown cluster is expired":                  {nil, map[string]string{"m9": "1"}, "expired"},
		"a version that is no number is expired":         {nil, map[string]string{"m1": "x"}, "expired"},
		"a version that left the log is expired":         {func(c *objectcachetest.Cache) { putMany(c, 10) }, map[string]string{"m1": "12"}, "expired"},
		"a version of the old numbering is expired":      {func(c *objectcachetest.Cache) { c.List("m1", kind, "11", configMap("a")) }, map[string]string{"m1": "13"}, "expired"},
		"the version of the new numbering is valid":      {func(c *objectcachetest.Cache) { c.List("m1", kind, "11", configMap("a")) }, map[string]string{"m1": "11"}, ""},
		"a cluster that was removed is expired":          {func(c *objectcachetest.Cache) { c.RemoveCluster("m1", kind) }, map[string]string{"m1": "13"}, "expired"},
		"a cluster that was never listed is expired":     {func(c *objectcachetest.Cache) { c.AddCluster("m2", kind) }, map[string]string{"m1": "13", "m2": "3"}, "expired"},
		"a cluster that waits has an empty initial list": {func(c *objectcachetest.Cache) { c.AddCluster("m2", kind) }, map[string]string{"m1": "13"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := newCache(t)
			if test.change != nil {
				test.change(cache)
			}
			if got := describeFollow(t, cache, test.versions); got != test.want {
				t.Errorf("events %q, want %q", got, test.want)
			}
		})
	}
}

// TestAFollowerReleasesTheInitialState checks that a follower does not keep the objects that it returned.
func TestAFollowerReleasesTheInitialState(t *testing.T) {
	kind := objectcachetest.ConfigMaps
	cache := objectcachetest.New(t, kind)
	cache.Put("m1", configMap("a"))
	cache.Put("m2", configMap("a"))
	ofKind := cache.KindOf(kind.GroupVersionKind)
	initial := []weak.Pointer[objectcache.ClusterObjects]{weak.Make(ofKind.Snapshot().Cluster("m1")), weak.Make(ofKind.Snapshot().Cluster("m2"))}
	cursor, err := ofKind.FollowFrom(nil)
	if err != nil {
		t.Fatal(err)
	}
	cache.Put("m1", configMap("b"))
	cache.Put("m2", configMap("b"))
	if events, err := readAll(cursor); err != nil || len(events) != 4 {
		t.Fatalf("%d events, error %v", len(events), err)
	}
	runtime.GC()
	for i, objects := range initial {
		if objects.Value() != nil {
			t.Errorf("the initial state of cluster m%d is still in memory", i+1)
		}
	}
	runtime.KeepAlive(cursor)
}

func putMany(c *objectcachetest.Cache, count int) {
	for range count {
		c.Put("m1", configMap("a"))
	}
}

func describeFollow(t *testing.T, cache *objectcachetest.Cache, versions map[string]string) string {
	t.Helper()
	cursor, err := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind).FollowFrom(versions)
	if errors.Is(err, objectcache.ErrExpired) {
		return "expired"
	}
	if err != nil {
		t.Fatal(err)
	}
	events, err := readAll(cursor)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%s@%s", e.Type, e.ResourceVersion))
	}
	return strings.Join(got, " ")
}

func TestAVersionBeyondTheCacheSkipsOnlyKnownEvents(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	cache.List("m1", objectcachetest.ConfigMaps, "10")
	cursor, err := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind).FollowFrom(map[string]string{"m1": "12"})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		cache.Put("m1", configMap("a"))
	}
	events, err := readAll(cursor)
	if err != nil || len(events) != 2 || events[0].ResourceVersion != "13" {
		t.Fatalf("events %v, %v, want those of versions 13 and 14", events, err)
	}
	cache.Bookmark("m1", objectcachetest.ConfigMaps, "20")
	if diff := cmp.Diff(map[string]string{"m1": "20"}, cursor.Versions()); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestFollowersEndWithTheirKind(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	cache.Put("m1", configMap("a"))
	kind := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind)
	cursor := kind.Follow(kind.Snapshot().Position())
	changed := cache.Changed()
	cache.RemoveKind(objectcachetest.ConfigMaps.GroupVersionKind)
	<-changed
	events, err := cursor.Next(t.Context())
	if err != nil || len(events) != 2 || events[0].Type != objectcache.Deleted || events[1].Type != objectcache.ClusterRemoved {
		t.Fatalf("events %v, %v, want Deleted and ClusterRemoved", events, err)
	}
	if _, err := cursor.Next(t.Context()); !errors.Is(err, objectcache.ErrExpired) {
		t.Fatalf("error %v, want ErrExpired", err)
	}
}

func TestALargeObjectIsRefused(t *testing.T) {
	cache := objectcachetest.NewWithOptions(t, objectcache.Options{MaxObjectBytes: 1000}, objectcachetest.ConfigMaps)
	object := configMap("large")
	if err := unstructured.SetNestedField(object.Object, strings.Repeat("<", 500), "data", "key"); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.AddCluster("m1", objectcachetest.ConfigMaps).Encode(object); err == nil || !strings.Contains(err.Error(), "limit of 1000 bytes") {
		t.Errorf("error %v, want the limit", err)
	}
}
