package objectcache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

// content is the state of all clusters: by cluster and name, the version of the object.
type content map[string]string

func contentOf(s *objectcache.Snapshot) content {
	c := content{}
	for _, cluster := range s.Clusters() {
		c[cluster.Source().Cluster] = "cached"
		for object := range cluster.All("") {
			c[cluster.Source().Cluster+"/"+object.Name()] = string(object.UID()) + "@" + object.ResourceVersion()
		}
	}
	return c
}

// apply applies events as a follower does, and returns an error for events that do not fit.
func (c content) apply(events []objectcache.Event) error {
	for _, e := range events {
		if err := c.applyOne(e); err != nil {
			return err
		}
	}
	return nil
}

func (c content) applyOne(e objectcache.Event) error {
	describe := func(o *objectcache.Object) string { return string(o.UID()) + "@" + o.ResourceVersion() }
	switch e.Type {
	case objectcache.ClusterAdded:
		c[e.Cluster] = "cached"
	case objectcache.ClusterRemoved:
		delete(c, e.Cluster)
	case objectcache.Added:
		if old, found := c[e.Cluster+"/"+e.New.Name()]; found {
			return fmt.Errorf("%s was added, but is there as %s", e.New.Name(), old)
		}
		c[e.Cluster+"/"+e.New.Name()] = describe(e.New)
	case objectcache.Modified:
		if got := c[e.Cluster+"/"+e.New.Name()]; got != describe(e.Old) {
			return fmt.Errorf("%s was modified from %s, but is %s", e.New.Name(), describe(e.Old), got)
		}
		c[e.Cluster+"/"+e.New.Name()] = describe(e.New)
	case objectcache.Deleted:
		if got := c[e.Cluster+"/"+e.Old.Name()]; got != describe(e.Old) {
			return fmt.Errorf("%s was deleted as %s, but is %s", e.Old.Name(), describe(e.Old), got)
		}
		delete(c, e.Cluster+"/"+e.Old.Name())
	case objectcache.Reset:
	}
	return nil
}

// readAll returns the events that are there now.
func readAll(cursor *objectcache.Cursor) ([]objectcache.Event, error) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	var all []objectcache.Event
	for {
		events, err := cursor.Next(ended)
		if errors.Is(err, context.Canceled) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, events...)
	}
}

func configMap(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(objectcachetest.ConfigMaps.GroupVersionKind)
	object.SetNamespace("default")
	object.SetName(name)
	return object
}

// memberState is the state of a simulated member.
type memberState struct {
	version int
	objects map[string]*unstructured.Unstructured
}

func (m *memberState) change(t *rapid.T) (name string, object *unstructured.Unstructured) {
	name = rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
	m.version++
	if _, found := m.objects[name]; found && rapid.Bool().Draw(t, "delete") {
		delete(m.objects, name)
		return name, nil
	}
	object = configMap(name)
	if existing := m.objects[name]; existing != nil {
		object.SetUID(existing.GetUID())
	} else {
		object.SetUID(types.UID(rapid.StringMatching("[a-z]{8}").Draw(t, "uid")))
	}
	object.SetResourceVersion(strconv.Itoa(m.version))
	m.objects[name] = object
	return name, object
}

// fleet drives a cache with the changes of members.
type fleet struct {
	cache   *objectcachetest.Cache
	members map[string]*memberState
}

func (f *fleet) step(t *rapid.T) {
	cluster := rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(t, "cluster")
	m := f.members[cluster]
	if m == nil {
		m = &memberState{version: 10, objects: map[string]*unstructured.Unstructured{}}
		f.members[cluster] = m
	}
	kind := objectcachetest.ConfigMaps
	switch rapid.IntRange(0, 9).Draw(t, "action") {
	case 0:
		f.cache.RemoveCluster(cluster, kind)
	case 1:
		for range rapid.IntRange(1, 5).Draw(t, "changes without a watch") {
			m.change(t)
		}
		f.list(cluster)
	case 2:
		f.cache.AddCluster(cluster, kind)
	case 3:
		f.cache.AddCluster(cluster, kind).SetState(objectcache.Stale, "not ready")
	default:
		if s := f.cache.KindOf(kind.GroupVersionKind).Snapshot().Cluster(cluster); s == nil || s.ResourceVersion() == "" {
			f.list(cluster)
			return
		}
		name, object := m.change(t)
		if object == nil {
			f.cache.DeleteAt(cluster, configMap(name), strconv.Itoa(m.version))
			return
		}
		f.cache.Put(cluster, object)
	}
}

func (f *fleet) list(cluster string) {
	m := f.members[cluster]
	objects := slices.Collect(maps.Values(m.objects))
	f.cache.List(cluster, objectcachetest.ConfigMaps, strconv.Itoa(m.version), objects...)
}

func TestFollowersReachTheNewerSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		options := objectcache.Options{LogEvents: rapid.SampledFrom([]int{3, 20, 1000}).Draw(rt, "length of the log")}
		f := &fleet{cache: objectcachetest.NewWithOptions(t, options, objectcachetest.ConfigMaps), members: map[string]*memberState{}}
		kind := f.cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind)
		for range rapid.IntRange(0, 10).Draw(rt, "steps before") {
			f.step(rt)
		}
		before := kind.Snapshot()
		state, cursor := contentOf(before), kind.Follow(before.Position())
		versions := cursor.Versions()
		for range rapid.IntRange(0, 15).Draw(rt, "steps after") {
			f.step(rt)
		}
		if diff := cmp.Diff(state, contentOf(before)); diff != "" {
			rt.Fatalf("a snapshot changed: %s", diff)
		}
		checkFollower(rt, kind, cursor, maps.Clone(state))
		resumed, err := kind.FollowFrom(versions)
		if err == nil {
			checkFollower(rt, kind, resumed, resumedContent(before, versions))
		} else if !errors.Is(err, objectcache.ErrExpired) {
			rt.Fatal(err)
		}
	})
}

// resumedContent returns the state of a follower that knows only the clusters with a version.
func resumedContent(s *objectcache.Snapshot, versions map[string]string) content {
	c := content{}
	for key, value := range contentOf(s) {
		for cluster := range versions {
			if len(key) >= 2 && key[:2] == cluster {
				c[key] = value
			}
		}
	}
	return c
}

func checkFollower(t *rapid.T, kind *objectcache.Kind, cursor *objectcache.Cursor, state content) {
	events, err := readAll(cursor)
	if errors.Is(err, objectcache.ErrExpired) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := state.apply(events); err != nil {
		t.Fatalf("%v\nevents: %v", err, events)
	}
	want := contentOf(kind.Snapshot())
	for _, c := range kind.Snapshot().Clusters() {
		// A follower from versions gets no ClusterAdded event for its initial state.
		state[c.Source().Cluster] = "cached"
	}
	if diff := cmp.Diff(want, state); diff != "" {
		t.Fatalf("the follower differs from the snapshot (-want +got):\n%s", diff)
	}
	wantVersions := map[string]string{}
	for _, c := range kind.Snapshot().Clusters() {
		if c.ResourceVersion() != "" {
			wantVersions[c.Source().Cluster] = c.ResourceVersion()
		}
	}
	if diff := cmp.Diff(wantVersions, cursor.Versions()); diff != "" {
		t.Fatalf("versions (-want +got):\n%s", diff)
	}
}

func TestManyFollowersReadWhileAMemberWrites(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	cache.Put("m1", configMap("first"))
	kind := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind)
	const changes, followers = 200, 50
	last := strconv.Itoa(2 + changes)
	var wait sync.WaitGroup
	for range followers {
		snapshot := kind.Snapshot()
		wait.Go(func() {
			state, cursor := contentOf(snapshot), kind.Follow(snapshot.Position())
			for cursor.Versions()["m1"] != last {
				events, err := cursor.Next(t.Context())
				if err == nil {
					err = state.apply(events)
				}
				if err != nil {
					t.Error(err)
					return
				}
				for object := range kind.Snapshot().Cluster("m1").All("default") {
					_ = object.Name()
				}
			}
		})
	}
	for i := range changes {
		cache.Put("m1", configMap(fmt.Sprintf("object-%d", i%20)))
	}
	wait.Wait()
}
