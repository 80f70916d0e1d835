package statuswriter

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestRenderFailures(t *testing.T) {
	type call struct {
		binding  types.UID
		failures map[string]string
	}
	broken := map[string]string{"m1": "Deployment shop/web: there is no field"}
	tests := map[string]struct {
		calls []call
		// notified are the bindings that subscribers are called with, in order.
		notified []types.UID
		want     map[types.UID]map[string]string
	}{
		"a binding that never failed": {
			calls: []call{{"a", nil}, {"a", map[string]string{}}},
		},
		"a failure": {
			calls:    []call{{"a", broken}},
			notified: []types.UID{"a"}, want: map[types.UID]map[string]string{"a": broken},
		},
		"the same failure again": {
			calls:    []call{{"a", broken}, {"a", map[string]string{"m1": broken["m1"]}}},
			notified: []types.UID{"a"}, want: map[types.UID]map[string]string{"a": broken},
		},
		"another cause": {
			calls:    []call{{"a", broken}, {"a", map[string]string{"m1": "rejected"}}},
			notified: []types.UID{"a", "a"}, want: map[types.UID]map[string]string{"a": {"m1": "rejected"}},
		},
		"another cluster": {
			calls:    []call{{"a", broken}, {"a", map[string]string{"m2": broken["m1"]}}},
			notified: []types.UID{"a", "a"}, want: map[types.UID]map[string]string{"a": {"m2": broken["m1"]}},
		},
		"no failures any more": {
			calls:    []call{{"a", broken}, {"a", nil}, {"a", nil}},
			notified: []types.UID{"a", "a"},
		},
		"several bindings": {
			calls:    []call{{"a", broken}, {"b", broken}, {"a", nil}},
			notified: []types.UID{"a", "b", "a"}, want: map[types.UID]map[string]string{"b": broken},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := NewRenderFailures()
			var notified []types.UID
			r.Subscribe(func(binding types.UID) {
				notified = append(notified, binding)
				r.Get(binding) // must not deadlock
			})
			for _, c := range tc.calls {
				before := len(notified)
				if changed := r.Set(c.binding, c.failures); changed != (len(notified) > before) {
					t.Errorf("Set(%s, %v) = %v", c.binding, c.failures, changed)
				}
			}
			if diff := cmp.Diff(tc.notified, notified); diff != "" {
				t.Errorf("notified (-want +got):\n%s", diff)
			}
			for _, binding := range []types.UID{"a", "b"} {
				if diff := cmp.Diff(tc.want[binding], r.Get(binding)); diff != "" {
					t.Errorf("failures of %s (-want +got):\n%s", binding, diff)
				}
			}
			if len(r.failures) != len(tc.want) {
				t.Errorf("%d bindings have failures, want %d", len(r.failures), len(tc.want))
			}
		})
	}
}

func TestRenderFailuresWithoutSubscribers(t *testing.T) {
	r := NewRenderFailures()
	if !r.Set("a", map[string]string{"m1": "rejected"}) || r.Set("a", map[string]string{"m1": "rejected"}) {
		t.Error("the result of Set depends on subscribers")
	}
}

func TestRenderFailuresCopyMap(t *testing.T) {
	r, failures := NewRenderFailures(), map[string]string{"m1": "rejected"}
	r.Set("a", failures)
	failures["m2"] = "rejected too"
	if diff := cmp.Diff(map[string]string{"m1": "rejected"}, r.Get("a")); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestRenderFailuresConcurrency(t *testing.T) {
	r := NewRenderFailures()
	r.Subscribe(func(binding types.UID) { r.Get(binding) })
	var workers sync.WaitGroup
	for _, binding := range []types.UID{"a", "b", "c"} {
		workers.Go(func() {
			for range 100 {
				r.Set(binding, map[string]string{"m1": "rejected"})
				r.Set(binding, nil)
			}
		})
	}
	workers.Wait()
	if len(r.failures) != 0 {
		t.Errorf("%d bindings are left", len(r.failures))
	}
}

func TestRenderedGeneration(t *testing.T) {
	r, web := NewRenderFailures(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}
	want := func(uid types.UID, generation int64) {
		t.Helper()
		if got := r.RenderedGeneration(web, uid); got != generation {
			t.Errorf("%s: rendered generation %d, want %d", uid, got, generation)
		}
	}
	want("a", 0)
	r.SetRendered(web, "a", 2)
	want("a", 2)
	r.SetRendered(web, "a", 3)
	want("a", 3)
	want("b", 0) // a new binding with that name
	r.DeleteRendered(web)
	want("a", 0)
}
