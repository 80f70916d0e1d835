package binding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestName(t *testing.T) {
	tests := map[string]struct{ name, kind, want string }{
		"the kind is appended in lower case": {"nginx", "Deployment", "nginx-deployment"},
		"colons become dots":                 {"system:foo", "ClusterRole", "system.foo-clusterrole"},
		"the name becomes lower case too":    {"system:foo:Bar", "ClusterRole", "system.foo.bar-clusterrole"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Name(tc.name, tc.kind); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReferenceKey(t *testing.T) {
	if got := ReferenceKey("default", "nginx-deployment"); got != "5bdc5c4dcf" {
		t.Errorf("a ResourceBinding: got %q", got)
	}
	if ReferenceKey("", "nginx-deployment") == ReferenceKey("default", "nginx-deployment") {
		t.Error("the namespace makes no difference")
	}
}

func TestMetadataByScope(t *testing.T) {
	tests := map[string]struct {
		namespaced      bool
		id, finalizer   string
		coordinates     map[string]string
		namespace, name string
	}{
		"a ResourceBinding": {
			namespaced: true, namespace: "shop", name: "web-deployment",
			id: "resourcebinding.karmada.io/permanent-id", finalizer: "karmada.io/binding-controller",
			coordinates: map[string]string{
				"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "web-deployment",
			},
		},
		"a ClusterResourceBinding": {
			name: "role-clusterrole",
			id:   "clusterresourcebinding.karmada.io/permanent-id", finalizer: "karmada.io/cluster-resource-binding-controller",
			coordinates: map[string]string{"clusterresourcebinding.karmada.io/name": "role-clusterrole"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := New(tc.namespaced)
			obj.SetNamespace(tc.namespace)
			obj.SetName(tc.name)
			obj.SetLabels(map[string]string{tc.id: "id-1"})
			if got := IsNamespaced(obj); got != tc.namespaced {
				t.Errorf("namespaced: %v", got)
			}
			if got := PermanentIDLabel(obj); got != tc.id {
				t.Errorf("permanent id label %q, want %q", got, tc.id)
			}
			if got := PermanentID(obj); got != "id-1" {
				t.Errorf("permanent id %q", got)
			}
			if got := Finalizer(obj); got != tc.finalizer {
				t.Errorf("finalizer %q, want %q", got, tc.finalizer)
			}
			if diff := cmp.Diff(tc.coordinates, ReferenceAnnotations(obj)); diff != "" {
				t.Errorf("coordinates (-want +got):\n%s", diff)
			}
			obj.BindingSpec().Replicas = 3
			obj.BindingStatus().SchedulerObservedGeneration = 2
			if obj.BindingSpec().Replicas != 3 || obj.BindingStatus().SchedulerObservedGeneration != 2 {
				t.Error("spec and status are copies")
			}
		})
	}
}

func newTargets(names ...string) []workv1alpha2.TargetCluster {
	var all []workv1alpha2.TargetCluster
	for i, name := range names {
		all = append(all, workv1alpha2.TargetCluster{Name: name, Replicas: int32(i + 1)})
	}
	return all
}

func TestTargets(t *testing.T) {
	tests := map[string]struct {
		spec workv1alpha2.ResourceBindingSpec
		want []workv1alpha2.TargetCluster
	}{
		"nothing scheduled": {want: []workv1alpha2.TargetCluster{}},
		"scheduled clusters come first, in order": {
			spec: workv1alpha2.ResourceBindingSpec{
				Clusters:   newTargets("m2", "m1"),
				RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: newTargets("m3", "m1")}, {Clusters: newTargets("m0", "m3")}},
			},
			want: []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}, {Name: "m1", Replicas: 2}, {Name: "m3", Replicas: 1}, {Name: "m0", Replicas: 1}},
		},
		"a workload required elsewhere keeps its own replicas": {
			spec: workv1alpha2.ResourceBindingSpec{
				Replicas: 7, Clusters: newTargets("m1"),
				RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: newTargets("m2")}},
			},
			want: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m2", Replicas: 7}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, TargetClusters(&tc.spec)); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpectedClusters(t *testing.T) {
	task := func(from string, mode policyv1alpha1.PurgeMode) workv1alpha2.GracefulEvictionTask {
		return workv1alpha2.GracefulEvictionTask{FromCluster: from, PurgeMode: mode}
	}
	tests := map[string]struct {
		spec             workv1alpha2.ResourceBindingSpec
		expected, purged []string
	}{
		"nothing is expected of an empty binding": {},
		"scheduled and required clusters": {
			spec: workv1alpha2.ResourceBindingSpec{
				Clusters: newTargets("m1"), RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: newTargets("m2")}},
			},
			expected: []string{"m1", "m2"},
		},
		"a gracefully evicted cluster is still expected": {
			spec:     workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task("m1", "Gracefully")}},
			expected: []string{"m1"},
		},
		"a cluster that is never purged is still expected": {
			spec:     workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task("m1", "Never")}},
			expected: []string{"m1"},
		},
		"a task without a mode is graceful": {
			spec:     workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task("m1", "")}},
			expected: []string{"m1"},
		},
		"a directly purged cluster is not expected": {
			spec:   workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task("m1", "Directly")}},
			purged: []string{"m1"},
		},
		"a directly purged cluster that is scheduled again is expected": {
			spec: workv1alpha2.ResourceBindingSpec{
				Clusters: newTargets("m1"), GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task("m1", "Directly")},
			},
			expected: []string{"m1"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(sets.New(tc.expected...), ExpectedClusters(&tc.spec)); diff != "" {
				t.Errorf("expected (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(sets.New(tc.purged...), DirectlyPurgedClusters(&tc.spec)); diff != "" {
				t.Errorf("directly purged (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetsAreExpectedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"m1", "m2", "m3", "m4"}), 0, 6)
		spec := &workv1alpha2.ResourceBindingSpec{
			Clusters: newTargets(names.Draw(t, "clusters")...), Replicas: rapid.Int32Range(0, 3).Draw(t, "replicas"),
			RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: newTargets(names.Draw(t, "first")...)}, {Clusters: newTargets(names.Draw(t, "second")...)}},
		}
		before := spec.DeepCopy()
		expected, seen := ExpectedClusters(spec), sets.New[string]()
		for _, target := range TargetClusters(spec) {
			if seen.Has(target.Name) {
				t.Fatalf("%s is a target twice", target.Name)
			}
			seen.Insert(target.Name)
		}
		if !seen.Equal(expected) {
			t.Fatalf("targets %v, expected %v", sets.List(seen), sets.List(expected))
		}
		if diff := cmp.Diff(before, spec); diff != "" {
			t.Fatalf("the spec was changed: %s", diff)
		}
	})
}

func TestIsWorkload(t *testing.T) {
	tests := map[string]struct {
		spec workv1alpha2.ResourceBindingSpec
		want bool
	}{
		"no replicas":                      {},
		"with replicas":                    {workv1alpha2.ResourceBindingSpec{Replicas: 1}, true},
		"with requirements, scaled to 0":   {workv1alpha2.ResourceBindingSpec{ReplicaRequirements: &workv1alpha2.ReplicaRequirements{}}, true},
		"with components of several kinds": {workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{{Name: "a"}}}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsWorkload(&tc.spec); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestIsDivided(t *testing.T) {
	with := func(kind policyv1alpha1.ReplicaSchedulingType) *workv1alpha2.ResourceBindingSpec {
		return &workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{
			ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: kind},
		}}
	}
	if !IsDivided(with("Divided")) || IsDivided(with("Duplicated")) {
		t.Error("the scheduling type is ignored")
	}
	if IsDivided(&workv1alpha2.ResourceBindingSpec{}) || IsDivided(&workv1alpha2.ResourceBindingSpec{Placement: &policyv1alpha1.Placement{}}) {
		t.Error("replicas are divided by default")
	}
}

func TestCopy(t *testing.T) {
	for name, stored := range map[string]Object{"namespaced": New(true), "cluster-scoped": New(false)} {
		t.Run(name, func(t *testing.T) {
			stored.SetName("web")
			stored.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
			copied := Copy(stored)
			if diff := cmp.Diff(stored, copied); diff != "" {
				t.Errorf("copy (-stored +copied):\n%s", diff)
			}
			copied.BindingSpec().Clusters[0].Name = "m2"
			if got := stored.BindingSpec().Clusters[0].Name; got != "m1" {
				t.Errorf("the stored binding has cluster %s now", got)
			}
		})
	}
}

func TestBelongsTo(t *testing.T) {
	bound := New(true)
	bound.SetNamespace("shop")
	bound.SetName("web")
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"annotations of the binding":                      {ReferenceAnnotations(bound), true},
		"no annotations":                                  {nil, true},
		"annotations of a binding in another namespace":   {map[string]string{"resourcebinding.karmada.io/namespace": "evil", "resourcebinding.karmada.io/name": "web"}, false},
		"annotations of another binding in the namespace": {map[string]string{"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "api"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := New(true)
			object.SetAnnotations(tc.annotations)
			if got := BelongsTo(object, bound); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
