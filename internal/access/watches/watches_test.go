package watches

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/domain/servedkinds"
)

var everything = labels.Everything()

// fixture is a subscription to the Widgets of one member.
type fixture struct {
	*testing.T
	manager      *Manager
	server       *apiServer
	subscription *Subscription
	recorder     *recorder
}

// TestFailures shows what subscribers see of an API server that fails and recovers. Each step is
// followed by the events and phases that it causes.
func TestFailures(t *testing.T) {
	tests := map[string]func(f *fixture){
		"events follow the first list": func(f *fixture) {
			f.server.put("c")
			f.server.put("a")
			f.server.remove("b")
			f.recorder.expect(f.T, "added c@4", "deleted b@6", "updated a@1 to a@5")
			f.expectUsable("a c d")
			f.recorder.expectPhases(f.T)
		},
		"a watch is resumed without a list": func(f *fixture) {
			f.server.fail(errors.New("connection refused"))
			f.sleep(10 * time.Second)
			f.recorder.expectPhases(f.T, Failing)
			f.expectUsable("a b d")
			f.server.put("a")
			f.server.fail(nil)
			f.sleep(time.Minute)
			f.recorder.expect(f.T, "updated a@1 to a@4")
			f.recorder.expectPhases(f.T, Synced)
			f.expectLists(1)
		},
		"an expired watch yields only the differences": func(f *fixture) {
			f.server.fail(errors.New("connection refused"))
			f.sleep(10 * time.Second)
			f.server.remove("b")
			f.server.put("c")
			f.server.compact()
			f.server.fail(nil)
			f.sleep(time.Minute)
			f.recorder.expect(f.T, "added c@5", "deleted b@2")
			f.expectUsable("a c d")
			f.expectLists(2)
		},
		"an API server restored from a backup is listed again": func(f *fixture) {
			f.server.fail(errors.New("connection refused"))
			f.sleep(10 * time.Second)
			restored := newAPIServer("a", "b")
			f.server.change(func() {
				f.server.version, f.server.objects, f.server.history = restored.version, restored.objects, restored.history
			})
			f.server.fail(nil)
			f.sleep(time.Minute)
			f.recorder.expect(f.T, "deleted d@3")
			f.server.put("e")
			f.recorder.expect(f.T, "added e@3")
		},
		"a list whose history was compacted is usable and listed again": func(f *fixture) {
			f.server.fail(errExpired)
			f.sleep(time.Second)
			f.server.change(func() { f.server.expireAfter = 1 })
			f.server.remove("a")
			f.server.put("f")
			f.server.compact()
			f.server.fail(nil)
			f.sleep(time.Minute)
			f.recorder.expect(f.T, "added f@5", "deleted a@1")
			f.expectLists(3)
		},
		"denied permissions keep the objects": func(f *fixture) {
			f.server.fail(errForbidden)
			f.sleep(time.Minute)
			f.recorder.expectPhases(f.T, Failing, Denied)
			f.server.remove("b")
			f.recorder.expect(f.T)
			f.server.fail(nil)
			f.sleep(time.Minute)
			f.recorder.expectPhases(f.T, Synced)
			f.recorder.expect(f.T, "deleted b@4")
		},
		"a kind that is removed and served again": func(f *fixture) {
			f.server.change(func() { f.server.availability = servedkinds.NotServed })
			f.server.fail(errNotFound)
			f.sleep(time.Minute)
			f.recorder.expectPhases(f.T, Failing, NotServed)
			f.expectUnusable()
			f.recorder.expect(f.T)
			f.server.put("c")
			f.server.fail(nil)
			f.server.change(func() { f.server.availability = servedkinds.Served })
			f.subscription.Retry()
			f.sleep(time.Second)
			f.recorder.expectPhases(f.T, Synced)
			f.recorder.expect(f.T, "added c@4")
		},
		"a response that the kind is not found proves nothing": func(f *fixture) {
			f.server.change(func() { f.server.availability = servedkinds.Served })
			f.server.fail(errNotFound)
			f.sleep(time.Hour)
			f.recorder.expectPhases(f.T, Failing)
			f.expectUsable("a b d")
		},
		"failed discovery proves nothing": func(f *fixture) {
			f.server.change(func() { f.server.availability = servedkinds.Unknown })
			f.server.fail(errNotFound)
			f.sleep(time.Hour)
			f.recorder.expectPhases(f.T, Failing)
			f.expectUsable("a b d")
		},
		"a kind that is missing in discovery for a moment": func(f *fixture) {
			f.server.change(func() { f.server.availability = servedkinds.NotServed })
			f.server.fail(errNotFound)
			f.sleep(3 * time.Second)
			f.server.change(func() { f.server.availability = servedkinds.Served })
			f.server.fail(nil)
			f.sleep(time.Minute)
			f.recorder.expectPhases(f.T, Failing, Synced)
			f.recorder.expect(f.T)
		},
		"another connection yields the differences": func(f *fixture) {
			other := newAPIServer("a", "x", "y", "z")
			f.manager.Connect("member1", other.server())
			f.recorder.expect(f.T, "added x@2", "added y@3", "added z@4", "deleted b@2", "deleted d@3")
			f.recorder.expectPhases(f.T, Syncing, Synced)
			f.server.put("q")
			f.recorder.expect(f.T)
		},
		"objects of a closed connection are not usable": func(f *fixture) {
			f.manager.Connect("member1", (&apiServer{err: errors.New("connection refused")}).server())
			f.sleep(time.Minute)
			f.expectUnusable()
			f.recorder.expect(f.T)
		},
		"an API server that ends each watch at once is not flooded": func(f *fixture) {
			f.server.change(func() { f.server.endsWatches = true })
			f.server.put("c")
			f.sleep(time.Minute)
			if requests := f.server.watchRequests; requests > 15 {
				f.Errorf("the API server got %d watch requests in one minute", requests)
			}
			f.expectUsable("a b c d")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(newFixture(t)) })
		})
	}
}

// newFixture returns a subscription that has received the Widgets a, b and d.
func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, manager: NewManager(t.Context()), server: newAPIServer("a", "b", "d"), recorder: &recorder{}}
	subscription, err := f.manager.Subscribe("member1", widgets, f.recorder.subscriber())
	if err != nil {
		t.Fatal(err)
	}
	f.subscription = subscription
	t.Cleanup(subscription.Close)
	f.expectUnusable()
	f.manager.Connect("member1", f.server.server())
	f.recorder.expect(t, "initial a@1", "initial b@2", "initial d@3")
	f.recorder.expectPhases(t, Synced)
	return f
}

func (f *fixture) sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (f *fixture) expectUsable(want string) {
	f.Helper()
	if got, isUsable := namesIn(f.T, f.subscription.Objects); got != want || !isUsable {
		f.Errorf("stored objects: got %q, usable: %t, want %q", got, isUsable, want)
	}
}

func (f *fixture) expectUnusable() {
	f.Helper()
	if _, isUsable := f.subscription.Get(types.NamespacedName{Namespace: "shop", Name: "a"}); isUsable {
		f.Error("the stored objects are usable")
	}
}

func (f *fixture) expectLists(want int) {
	f.Helper()
	if f.server.lists != want {
		f.Errorf("got %d lists, want %d", f.server.lists, want)
	}
}

func TestUnknownKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, server, r := NewManager(t.Context()), newAPIServer("a"), &recorder{}
		server.isUnknown, server.availability = true, servedkinds.NotServed
		m.Connect("member1", server.server())
		s, err := m.Subscribe("member1", widgets, r.subscriber())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		<-time.After(time.Minute)
		r.expectPhases(t, Failing, NotServed)
		if state := s.State(); !meta.IsNoMatchError(state.Err) {
			t.Errorf("got %v", state.Err)
		}
		server.change(func() { server.isUnknown, server.availability = false, servedkinds.Served })
		m.Retry("member1")
		r.expect(t, "initial a@1")
	})
}

func TestBackoff(t *testing.T) {
	tests := map[string]struct {
		err      error
		failures int
		longest  time.Duration
	}{
		"the first failure":         {errors.New("connection refused"), 1, minBackoff},
		"the third failure":         {errors.New("connection refused"), 3, 4 * minBackoff},
		"a server that is down":     {errors.New("connection refused"), 1000, maxBackoff},
		"a kind that is not served": {&meta.NoKindMatchError{}, 1000, maxBackoff},
		"a list beyond a limit":     {fmt.Errorf("listing: %w", &bounds.ExceededError{}), 1000, maxBoundBackoff},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := backoff(test.err, test.failures); got > test.longest || got < test.longest*3/4-1 {
				t.Errorf("the delay is %s, want about %s", got, test.longest)
			}
		})
	}
}

func TestSubscriptionsShareAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		late := &recorder{}
		second, err := f.manager.Subscribe("member1", widgets, Subscriber{Handler: late, Indexers: toolscache.Indexers{
			"name": func(object any) ([]string, error) {
				return []string{object.(*unstructured.Unstructured).GetName()}, nil
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		late.expect(t, "initial a@1", "initial b@2", "initial d@3")
		f.expectLists(1)
		if found, isUsable := second.ByIndex("name", "b"); len(found) != 1 || !isUsable {
			t.Errorf("got %d objects from the index", len(found))
		}
		f.server.put("e")
		f.recorder.expect(t, "added e@4")
		late.expect(t, "added e@4")
		f.subscription.Close()
		f.server.put("f")
		f.recorder.expect(t)
		late.expect(t, "added f@5")
		second.Close()
		if _, isRunning := f.manager.Find("member1", widgets); isRunning {
			t.Error("the watch runs without a subscription")
		}
		f.expectUnusable()
		f.server.put("g")
		late.expect(t)
	})
}

func TestFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, recorders := NewManager(t.Context()), map[string]*recorder{}
		m.Connect("member1", newAPIServer("a").server())
		m.Connect(ControlPlane, newAPIServer("z").server())
		fleet, err := m.SubscribeFleet(widgets, func(cluster string) Subscriber {
			recorders[cluster] = &recorder{}
			return recorders[cluster].subscriber()
		})
		if err != nil {
			t.Fatal(err)
		}
		defer fleet.Close()
		m.Connect("member2", newAPIServer("b").server())
		synctest.Wait()
		if len(recorders) != 2 {
			t.Fatalf("subscribed in %d clusters, want 2", len(recorders))
		}
		recorders["member1"].expect(t, "initial a@1")
		recorders["member2"].expect(t, "initial b@1")
		m.Disconnect("member1")
		if _, isConnected := fleet.In("member1"); isConnected {
			t.Error("member1 is still in the fleet")
		}
		objects, _ := fleet.In("member2")
		if got, _ := namesIn(t, objects); got != "b" {
			t.Errorf("member2 has the objects %q", got)
		}
		if _, isKnown := m.clusters["member1"]; isKnown {
			t.Error("a cluster without connection and watches is kept")
		}
		m.Connect("member1", newAPIServer("c").server())
		synctest.Wait()
		recorders["member1"].expect(t, "initial c@1")
	})
}

// TestManyKinds subscribes to 500 kinds in each of 10 clusters.
func TestManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(t.Context())
		var all []*Subscription
		for c := range 10 {
			cluster := fmt.Sprintf("member%d", c)
			m.Connect(cluster, newAPIServer("a", "b").server())
			for k := range 500 {
				query := Query{Kind: widgetKind.GroupVersion().WithKind(fmt.Sprintf("Widget%d", k))}
				added, err := m.Subscribe(cluster, query, Subscriber{})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, added)
			}
		}
		for _, each := range all {
			if !each.WaitForList(t.Context()) {
				t.Fatalf("a kind was not listed: %+v", each.State())
			}
		}
		for _, each := range all {
			each.Close()
		}
	})
}

func TestExceededLimitKeepsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, server, r := NewManager(t.Context()), newAPIServer("a", "b"), &recorder{}
		limited := server.server()
		limits := bounds.DefaultLimits()
		limits.Objects, limits.OtherObjects = 1, 3
		limited.Bounds = &bounds.MemberBounds{Limits: limits, Hits: bounds.NewHitTracker("member1", time.Now), Now: time.Now}
		m.Connect("member1", limited)
		s, err := m.Subscribe("member1", widgets, r.subscriber())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r.expect(t, "initial a@1", "initial b@2")
		server.put("c")
		server.put("d")
		<-time.After(time.Hour)
		r.expect(t, "added c@3")
		r.expectPhases(t, Synced, OverBounds)
		if names, isUsable := namesIn(t, s.Objects); names != "a b c" || !isUsable {
			t.Errorf("stored objects: %q, usable: %t", names, isUsable)
		}
		if server.lists > 30 {
			t.Errorf("the API server got %d lists in one hour", server.lists)
		}
	})
}
