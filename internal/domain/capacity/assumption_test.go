package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// specWith returns a spec with targets such as "m1:3".
func specWith(t interface{ Fatal(...any) }, targets ...string) *workv1alpha2.ResourceBindingSpec {
	spec := &workv1alpha2.ResourceBindingSpec{
		Resource:            workv1alpha2.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"},
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{PriorityClassName: "high", ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	}
	for _, text := range targets {
		target := workv1alpha2.TargetCluster{}
		name, replicas, _ := strings.Cut(text, ":")
		if _, err := fmt.Sscan(replicas, &target.Replicas); err != nil {
			t.Fatal(err)
		}
		target.Name = name
		spec.Clusters = append(spec.Clusters, target)
	}
	return spec
}

// describe returns the assumed components of a cluster, such as "web=3".
func describe(workloads []AssumedWorkload) string {
	var texts []string
	for _, workload := range workloads {
		for _, component := range workload.Components {
			texts = append(texts, fmt.Sprintf("%s=%d", component.Name, component.Replicas))
		}
	}
	return strings.Join(texts, " ")
}

// step is one write of targets, at a time after noon.
type step struct {
	at            time.Duration
	before, after []string
}

func TestRecord(t *testing.T) {
	tests := map[string]struct {
		steps []step
		at    time.Duration
		want  map[string]string
	}{
		"nothing is recorded": {want: map[string]string{"m1": ""}},
		"a first scheduling": {
			steps: []step{{after: []string{"m1:3", "m2:1"}}}, want: map[string]string{"m1": "web=3", "m2": "web=1", "m3": ""},
		},
		"only the increase counts": {
			steps: []step{{before: []string{"m1:3", "m2:2"}, after: []string{"m1:5", "m2:2"}}}, want: map[string]string{"m1": "web=2", "m2": ""},
		},
		"increases add up while they are assumed": {
			steps: []step{{before: []string{"m1:3"}, after: []string{"m1:5"}}, {at: time.Minute, before: []string{"m1:5"}, after: []string{"m1:6"}}},
			at:    2 * time.Minute, want: map[string]string{"m1": "web=3"},
		},
		"an expired increase does not add up": {
			steps: []step{{before: []string{"m1:3"}, after: []string{"m1:5"}}, {at: 6 * time.Minute, before: []string{"m1:5"}, after: []string{"m1:6"}}},
			at:    6 * time.Minute, want: map[string]string{"m1": "web=1"},
		},
		"a decrease": {
			steps: []step{{before: []string{"m1:3"}, after: []string{"m1:5"}}, {before: []string{"m1:5"}, after: []string{"m1:4"}}},
			want:  map[string]string{"m1": "web=1"},
		},
		"a decrease below the former number, then an increase": {
			steps: []step{{before: []string{"m1:3"}, after: []string{"m1:5"}}, {before: []string{"m1:5"}, after: []string{"m1:2"}}, {before: []string{"m1:2"}, after: []string{"m1:4"}}},
			want:  map[string]string{"m1": "web=2"},
		},
		"a cluster that is not a target any more": {
			steps: []step{{after: []string{"m1:3", "m2:1"}}, {before: []string{"m1:3", "m2:1"}, after: []string{"m2:4"}}},
			want:  map[string]string{"m1": "", "m2": "web=4"},
		},
		"shortly before the end": {
			steps: []step{{after: []string{"m1:3"}}}, at: AssumptionLifetime - time.Nanosecond, want: map[string]string{"m1": "web=3"},
		},
		"the end": {
			steps: []step{{after: []string{"m1:3"}}}, at: AssumptionLifetime, want: map[string]string{"m1": ""},
		},
		"a further write restarts the lifetime": {
			steps: []step{{after: []string{"m1:3"}}, {at: 4 * time.Minute, before: []string{"m1:3"}, after: []string{"m1:3", "m2:1"}}},
			at:    8 * time.Minute, want: map[string]string{"m1": "web=3", "m2": "web=1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := NewAssumptionCache()
			for _, s := range test.steps {
				cache.Record(key("web"), specWith(t, s.before...), specWith(t, s.after...), noon.Add(s.at))
			}
			for cluster, want := range test.want {
				if got := describe(cache.Assumed(cluster, key("other"), noon.Add(test.at))); got != want {
					t.Errorf("%s: %q, want %q", cluster, got, want)
				}
				if own := cache.Assumed(cluster, key("web"), noon.Add(test.at)); len(own) != 0 {
					t.Errorf("%s: the binding counts against itself: %v", cluster, own)
				}
			}
		})
	}
}

func TestAssumedWorkload(t *testing.T) {
	cache := NewAssumptionCache()
	cache.Record(key("b"), specWith(t), specWith(t, "m1:2"), noon)
	cache.Record(key("a"), specWith(t), specWith(t, "m1:1"), noon)
	requirements := &workv1alpha2.ComponentReplicaRequirements{PriorityClassName: "high", ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	want := []AssumedWorkload{
		{Namespace: "shop", Components: []workv1alpha2.Component{{Name: "web", Replicas: 1, ReplicaRequirements: requirements}}},
		{Namespace: "shop", Components: []workv1alpha2.Component{{Name: "web", Replicas: 2, ReplicaRequirements: requirements}}},
	}
	if diff := cmp.Diff(want, cache.Assumed("m1", key("c"), noon)); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
}

func TestComponents(t *testing.T) {
	sets := specWith(t)
	sets.Components = []workv1alpha2.Component{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1}}
	whole, recorded, changed := *sets, *sets, *sets
	whole.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	recorded.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Components: []workv1alpha2.TargetComponent{{Name: "a", Replicas: 2}, {Name: "b", Replicas: 1}}}}
	changed.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Components: []workv1alpha2.TargetComponent{{Name: "a", Replicas: 5}, {Name: "b", Replicas: 1}}}}
	tests := map[string]struct {
		before, after *workv1alpha2.ResourceBindingSpec
		want          string
	}{
		"a set":                         {sets, &whole, "a=2 b=1"},
		"a set with recorded replicas":  {sets, &recorded, "a=2 b=1"},
		"a component grows":             {&recorded, &changed, "a=3"},
		"a component shrinks":           {&changed, &recorded, ""},
		"the same set without replicas": {&whole, &recorded, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cache := NewAssumptionCache()
			cache.Record(key("web"), test.before, test.after, noon)
			if got := describe(cache.Assumed("m1", key("other"), noon)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	cache := NewAssumptionCache()
	cache.Record(key("web"), specWith(t), specWith(t, "m1:1", "m2:2"), noon)
	cache.ReleaseCluster(key("web"), "m1")
	cache.ReleaseCluster(key("web"), "unknown")
	if got := describe(cache.Assumed("m1", key("x"), noon)) + describe(cache.Assumed("m2", key("x"), noon)); got != "web=2" {
		t.Errorf("after the release of m1: %q", got)
	}
	cache.Release(key("web"))
	cache.Release(key("web"))
	if len(cache.byCluster) != 0 || len(cache.clusters) != 0 {
		t.Errorf("the cache holds %v", cache.byCluster)
	}
}

func TestHealthyAgain(t *testing.T) {
	item := func(cluster string, health workv1alpha2.ResourceHealth) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: health}
	}
	older := []workv1alpha2.AggregatedStatusItem{item("stays", "Healthy"), item("turns", "Unhealthy"), item("breaks", "Healthy")}
	newer := []workv1alpha2.AggregatedStatusItem{item("stays", "Healthy"), item("turns", "Healthy"), item("breaks", "Unhealthy"), item("new", "Healthy"), item("unknown", "Unknown")}
	if diff := cmp.Diff([]string{"turns", "new"}, HealthyAgain(older, newer)); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// The assumed replicas never exceed the replicas of the targets, and expired assumptions do not stay
// in the cache.
func TestCacheIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cache, now, stored := NewAssumptionCache(), noon, map[string][]string{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "binding")
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds")) * time.Second)
			var after []string
			for _, cluster := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"m1", "m2", "m3"}), 0, 3, rapid.ID).Draw(t, "clusters") {
				after = append(after, fmt.Sprintf("%s:%d", cluster, rapid.IntRange(0, 5).Draw(t, "replicas")))
			}
			cache.Record(key(name), specWith(t, stored[name]...), specWith(t, after...), now)
			stored[name] = after
			for _, cluster := range []string{"m1", "m2", "m3"} {
				for _, workload := range cache.Assumed(cluster, key(""), now) {
					if replicas := workload.Components[0].Replicas; replicas < 1 || replicas > 5 {
						t.Fatalf("%s: %d replicas are assumed", cluster, replicas)
					}
				}
				for binding := range cache.byCluster[cluster] {
					if !slices.ContainsFunc(stored[binding.Name], func(target string) bool { return strings.HasPrefix(target, cluster+":") }) {
						t.Fatalf("%s is assumed in %s, which is not its target", binding, cluster)
					}
				}
			}
		}
		cache.Record(key("last"), specWith(t), specWith(t), now.Add(AssumptionLifetime+sweepInterval))
		if len(cache.byCluster) != 0 || len(cache.clusters) != 0 {
			t.Fatalf("expired assumptions stay: %v", cache.byCluster)
		}
	})
}
