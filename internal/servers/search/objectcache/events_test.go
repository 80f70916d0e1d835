package objectcache_test

import (
	"errors"
	"fmt"
	"testing"

	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

func TestFollowersNoticeChangedNamespaces(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	cache.Put("m1", configMap("a"))
	kind := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind)
	version := kind.Snapshot().Cluster("m1").ResourceVersion()
	fromVersion, err := kind.FollowFrom(map[string]string{"m1": version})
	if err != nil {
		t.Fatal(err)
	}
	cursors := map[string]*objectcache.Cursor{"a snapshot": kind.Follow(kind.Snapshot().Position()), "a version": fromVersion}
	cache.AddCluster("m1", objectcachetest.ConfigMaps, "default")
	cache.AddCluster("m1", objectcachetest.ConfigMaps, "default")
	for name, cursor := range cursors {
		events, err := readAll(cursor)
		if err != nil || len(events) != 1 || events[0].Type != objectcache.NamespacesChanged || events[0].Cluster != "m1" {
			t.Errorf("the follower from %s got %+v, %v, want one NamespacesChanged", name, events, err)
		}
		if got := cursor.Versions()["m1"]; got != version {
			t.Errorf("the version of the follower from %s became %s, want %s", name, got, version)
		}
	}
	later, err := kind.FollowFrom(map[string]string{"m1": version})
	if err != nil {
		t.Fatal(err)
	}
	if events, err := readAll(later); err != nil || len(events) != 0 {
		t.Errorf("a later follower got %+v, %v, want nothing", events, err)
	}
}

func TestOnlyStatesWakeThoseThatWaitForStates(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	cache.Put("m1", configMap("a"))
	tests := map[string]struct {
		change func()
		wakes  bool
	}{
		"an object":         {func() { cache.Put("m1", configMap("b")) }, false},
		"a deletion":        {func() { cache.Delete("m1", configMap("b")) }, false},
		"a bookmark":        {func() { cache.Bookmark("m1", objectcachetest.ConfigMaps, "1000") }, false},
		"a state":           {func() { cache.SetState("m1", objectcachetest.ConfigMaps, objectcache.Stale, "no answer") }, true},
		"another namespace": {func() { cache.AddCluster("m1", objectcachetest.ConfigMaps, "default") }, true},
		"another cluster":   {func() { cache.AddCluster("m2", objectcachetest.ConfigMaps) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := cache.StatesChanged()
			test.change()
			wakes := false
			select {
			case <-changed:
				wakes = true
			default:
			}
			if wakes != test.wakes {
				t.Errorf("the change wakes: %t, want %t", wakes, test.wakes)
			}
		})
	}
}

func TestABatchBeyondTheLimitOfTheLogExpiresFollowers(t *testing.T) {
	cache := objectcachetest.NewWithOptions(t, objectcache.Options{LogBytes: 5000}, objectcachetest.ConfigMaps)
	for i := range 100 {
		cache.Put("m1", configMap(fmt.Sprintf("c%d", i)))
	}
	kind := cache.KindOf(objectcachetest.ConfigMaps.GroupVersionKind)
	cursor := kind.Follow(kind.Snapshot().Position())
	cache.RemoveCluster("m1", objectcachetest.ConfigMaps)
	if _, err := readAll(cursor); !errors.Is(err, objectcache.ErrExpired) {
		t.Errorf("the follower of a removal of 100 objects got %v, want ErrExpired", err)
	}
	cursor = kind.Follow(kind.Snapshot().Position())
	cache.Put("m2", configMap("a"))
	if events, err := readAll(cursor); err != nil || len(events) == 0 {
		t.Errorf("a new follower got %+v, %v, want an event", events, err)
	}
}

func TestAListThatExpiresContinuesAndIsListedAgain(t *testing.T) {
	m := newFakeMember(t)
	want := []string{}
	for i := range 7 {
		m.put("configmaps", "default", fmt.Sprintf("c%d", i), "1")
		want = append(want, fmt.Sprintf("default/c%d=1", i))
	}
	m.expireAt = 3
	c := newControl(t, objectcache.Options{PageSize: 3}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	// The first list has a page that expires. Its objects are cached, and are outdated until the second list.
	c.eventually(func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if lists, pages := m.lists["configmaps"], len(m.limits); lists != 2 || pages != 4+3 {
			return fmt.Sprintf("configmaps were listed %d times in %d pages, want 7 pages: once inconsistently and once consistently", lists, pages)
		}
		return ""
	})
	c.expect("m1", "ConfigMap", objectcache.Current, want...)
}
