package dependency

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// newAttachedBinding returns the ConfigMap's binding after Attach was called for each of the
// dependents.
func newAttachedBinding(t testing.TB, dependents ...*workv1alpha2.ResourceBinding) binding.Object {
	t.Helper()
	made := binding.New(true)
	made.SetName("settings-configmap")
	var peers OtherDependents
	for _, each := range dependents {
		if err := Attach(made, settingsConfigMap(), each, peers, noon); err != nil {
			t.Fatal(err)
		}
		peers.Existing = append(peers.Existing, each)
	}
	return made
}

func TestAttachCreatesBinding(t *testing.T) {
	made := newAttachedBinding(t, newDependent("nginx-deployment", targetClusters("m1", "m2")))
	made.SetAnnotations(nil) // the object's state is a hash
	want := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "settings-configmap", Finalizers: []string{"karmada.io/binding-controller"},
			Labels: map[string]string{"resourcebinding.karmada.io/depended-by-" + binding.ReferenceKey("shop", "nginx-deployment"): "id-nginx-deployment"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: "uid-settings", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", UID: "uid-settings", ResourceVersion: "7"},
			RequiredBy: []workv1alpha2.BindingSnapshot{{
				Namespace: "shop", Name: "nginx-deployment",
				Clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 1}, {Name: "m2", Replicas: 1}},
			}},
			ConflictResolution: policyv1alpha1.ConflictAbort, PreserveResourcesOnDeletion: new(false),
		},
	}
	if diff := cmp.Diff(binding.Object(want), made); diff != "" {
		t.Errorf("the binding (-want +got):\n%s", diff)
	}
}

func TestDependencyStaysUntilDependentIsEvicted(t *testing.T) {
	leaving := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "m1", Replicas: new(int32(3)), PurgeMode: policyv1alpha1.PurgeModeGracefully},
			{FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "m3"},
		}
	}
	made := newAttachedBinding(t, newDependent("web", targetClusters("m3"), leaving))
	want := []workv1alpha2.TargetCluster{{Name: "m3", Replicas: 1}, {Name: "m1", Replicas: 3}, {Name: "m2"}}
	if diff := cmp.Diff(want, made.BindingSpec().RequiredBy[0].Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if err := Attach(made, settingsConfigMap(), newDependent("web", targetClusters("m3")), OtherDependents{}, noon); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[:1], made.BindingSpec().RequiredBy[0].Clusters); diff != "" {
		t.Errorf("clusters afterwards (-want +got):\n%s", diff)
	}
}

func TestAttachClusterScopedObject(t *testing.T) {
	made := binding.New(false)
	made.SetName("system.view-clusterrole")
	if err := Attach(made, newObject("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:view"), newDependent("web"), OtherDependents{}, noon); err != nil {
		t.Fatal(err)
	}
	if made.GetName() != "system.view-clusterrole" || made.GetFinalizers()[0] != "karmada.io/cluster-resource-binding-controller" {
		t.Errorf("the binding is %s with %v", made.GetName(), made.GetFinalizers())
	}
}

func TestAttachSecondDependent(t *testing.T) {
	made := newAttachedBinding(t, newDependent("a", targetClusters("m1")), newDependent("b", targetClusters("m2"), overwriting, preserving))
	spec := made.BindingSpec()
	if diff := cmp.Diff(sets.New("m1", "m2"), binding.ExpectedClusters(spec)); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if spec.ConflictResolution != policyv1alpha1.ConflictOverwrite || !*spec.PreserveResourcesOnDeletion {
		t.Errorf("terms: %s, %v", spec.ConflictResolution, *spec.PreserveResourcesOnDeletion)
	}
	// The first dependent changes its clusters and keeps its position.
	if err := Attach(made, settingsConfigMap(), newDependent("a", targetClusters("m3")), OtherDependents{Existing: []*workv1alpha2.ResourceBinding{newDependent("b", overwriting)}}, noon); err != nil {
		t.Fatal(err)
	}
	if DependentKey(spec.RequiredBy[0]) != shopKey("a") || spec.RequiredBy[0].Clusters[0].Name != "m3" || len(spec.RequiredBy) != 2 {
		t.Errorf("required by %+v", spec.RequiredBy)
	}
}

func TestAttachUpdatesResourceVersion(t *testing.T) {
	claim := policy.Claim{Namespace: "shop", Name: "p", ID: "id-p"}
	tests := map[string]struct {
		binding func(binding.Object)
		object  func(o map[string]any)
		version string
	}{
		"a change of the object updates the version":  {nil, func(o map[string]any) { o["data"] = map[string]any{"a": "b"} }, "8"},
		"a change of its status does not":             {nil, func(o map[string]any) { o["status"] = map[string]any{"a": "b"} }, "7"},
		"a claimed binding is not updated":            {func(b binding.Object) { claim.Apply(b) }, func(o map[string]any) { o["data"] = "x" }, "7"},
		"a binding that a policy released is updated": {func(b binding.Object) { b.BindingSpec().Placement = &policyv1alpha1.Placement{} }, func(o map[string]any) { o["data"] = "x" }, "8"},
		"a binding without the hash is updated":       {func(b binding.Object) { b.SetAnnotations(nil) }, func(o map[string]any) { o["status"] = "x" }, "8"},
		"another API version with another dependent":  {func(b binding.Object) { addRequiredBy(b, "other") }, func(o map[string]any) { o["apiVersion"] = "v2" }, "7"},
		"another API version of the only dependent":   {nil, func(o map[string]any) { o["apiVersion"] = "v2" }, "8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := newAttachedBinding(t, newDependent("web"))
			if tc.binding != nil {
				tc.binding(made)
			}
			changed := settingsConfigMap()
			changed.SetResourceVersion("8")
			tc.object(changed.Object)
			if err := Attach(made, changed, newDependent("web"), OtherDependents{}, noon); err != nil {
				t.Fatal(err)
			}
			if got := made.BindingSpec().Resource.ResourceVersion; got != tc.version {
				t.Errorf("version %s, want %s", got, tc.version)
			}
			if len(made.GetOwnerReferences()) != 1 || len(made.GetFinalizers()) != 1 {
				t.Errorf("owners %v, finalizers %v", made.GetOwnerReferences(), made.GetFinalizers())
			}
		})
	}
}

func addRequiredBy(attached binding.Object, name string) {
	spec := attached.BindingSpec()
	spec.RequiredBy = append(spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name})
}

func TestClaimedBindingKeepsPolicySettings(t *testing.T) {
	made := newAttachedBinding(t, newDependent("a"))
	spec := made.BindingSpec()
	spec.Placement, spec.ConflictResolution, spec.PreserveResourcesOnDeletion = &policyv1alpha1.Placement{}, policyv1alpha1.ConflictAbort, nil
	policy.Claim{Name: "p", ID: "id-p"}.Apply(made)
	if err := Attach(made, settingsConfigMap(), newDependent("a", overwriting, preserving, targetClusters("m2")), OtherDependents{}, noon); err != nil {
		t.Fatal(err)
	}
	if spec.ConflictResolution != policyv1alpha1.ConflictAbort || spec.PreserveResourcesOnDeletion != nil {
		t.Errorf("terms: %s, %v", spec.ConflictResolution, spec.PreserveResourcesOnDeletion)
	}
	if spec.RequiredBy[0].Clusters[0].Name != "m2" {
		t.Errorf("required by %+v", spec.RequiredBy)
	}
	if Release(made, newDependent("a"), OtherDependents{}, noon) {
		t.Error("a claimed binding is unneeded")
	}
	if len(spec.RequiredBy) != 0 || slices.ContainsFunc(slices.Collect(maps.Keys(made.GetLabels())), isDependedByLabel) {
		t.Errorf("remaining: %+v, %v", spec.RequiredBy, made.GetLabels())
	}
}

// If a dependent moved away from a cluster, the attached binding records no departure for the cluster,
// because only the dependent's binding knows the reason.
func TestReleaseRecordsDepartures(t *testing.T) {
	made := newAttachedBinding(t, newDependent("a", targetClusters("m1", "m2")), newDependent("b", targetClusters("m2", "m3")))
	check := func(want map[string]bool) {
		t.Helper()
		for cluster, departed := range want {
			if got := binding.HasDeparted(made, cluster, noon); got != departed {
				t.Errorf("departed from %s: %v", cluster, got)
			}
		}
	}
	Release(made, newDependent("a"), OtherDependents{Existing: []*workv1alpha2.ResourceBinding{newDependent("b")}}, noon)
	check(map[string]bool{"m1": true, "m2": false, "m3": false})
	if err := Attach(made, settingsConfigMap(), newDependent("b", targetClusters("m1")), OtherDependents{}, noon); err != nil {
		t.Fatal(err)
	}
	check(map[string]bool{"m1": false, "m2": false, "m3": false})
}

// A dependent may still run in a cluster to which dispatching is suspended.
func TestSuspendedDependentKeepsClusters(t *testing.T) {
	made := newAttachedBinding(t, newDependent("a", targetClusters("m1", "m2")))
	moved := newDependent("a", targetClusters("m3"))
	moved.Spec.Suspension = &workv1alpha2.Suspension{}
	moved.Spec.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}}
	for _, want := range [][]string{{"m1", "m3"}, {"m3"}} {
		if err := Attach(made, settingsConfigMap(), moved, OtherDependents{}, noon); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, sets.List(binding.ExpectedClusters(made.BindingSpec()))); diff != "" {
			t.Errorf("clusters (-want +got):\n%s", diff)
		}
		moved.Spec.Suspension = nil
	}
}

func isDependedByLabel(label string) bool {
	return strings.HasPrefix(label, workv1alpha2.DependedByLabelPrefix)
}

func TestBindingOfAnotherObjectIsUnchanged(t *testing.T) {
	tests := map[string]struct {
		change func(binding.Object)
		want   any
	}{
		"an earlier object with the same name": {func(b binding.Object) { b.GetOwnerReferences()[0].UID = "earlier" }, new(*policy.OwnerError)},
		"another kind with the same name": {func(b binding.Object) {
			owners := b.GetOwnerReferences()
			owners[0].UID = "other"
			b.SetOwnerReferences(owners)
			b.BindingSpec().Resource.APIVersion = "example.io/v1"
		}, new(*policy.OwnerError)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := newAttachedBinding(t, newDependent("web"))
			tc.change(made)
			before := made.DeepCopyObject()
			err := Attach(made, settingsConfigMap(), newDependent("other"), OtherDependents{}, noon)
			if !errors.As(err, tc.want) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(before, made.DeepCopyObject()); diff != "" {
				t.Errorf("the binding was changed: %s", diff)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	tests := map[string]struct {
		dependents []*workv1alpha2.ResourceBinding
		change     func(binding.Object)
		released   string
		peers      OtherDependents
		unneeded   bool
		terms      Settings
		left       []string
	}{
		"the last dependent": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a", overwriting)}, released: "a", unneeded: true,
			terms: Settings{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"the settings of the remaining dependent": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a", overwriting, preserving), newDependent("b")}, released: "a",
			peers: OtherDependents{Existing: []*workv1alpha2.ResourceBinding{newDependent("b")}},
			terms: Settings{ConflictResolution: policyv1alpha1.ConflictAbort}, left: []string{"b"},
		},
		"deleted dependents are removed too": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a"), newDependent("b")}, released: "a",
			peers: OtherDependents{Deleted: sets.New(shopKey("b"))}, unneeded: true,
			terms: Settings{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"a dependent that is not known to be deleted stays": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a"), newDependent("b")}, released: "a",
			terms: Settings{ConflictResolution: policyv1alpha1.ConflictAbort}, left: []string{"b"},
		},
		"a scheduled binding is needed": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a")}, released: "a",
			change: func(b binding.Object) { b.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}} },
			terms:  Settings{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"a binding with an eviction task is needed": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a")}, released: "a",
			change: func(b binding.Object) {
				b.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
			},
			terms: Settings{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"a binding of a deleted policy is needed": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a", overwriting)}, released: "a",
			change: func(b binding.Object) { b.BindingSpec().Placement = &policyv1alpha1.Placement{} },
			terms:  Settings{ConflictResolution: policyv1alpha1.ConflictOverwrite},
		},
		"a binding of a multi-cluster service is needed": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a")}, released: "a",
			change: func(b binding.Object) {
				b.SetLabels(withEntry(b.GetLabels(), "multiclusterservice.karmada.io/permanent-id", "x"))
			},
			terms: Settings{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"a binding with another owner is needed": {
			dependents: []*workv1alpha2.ResourceBinding{newDependent("a")}, released: "a",
			change: func(b binding.Object) { b.SetOwnerReferences(nil) },
			terms:  Settings{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := newAttachedBinding(t, tc.dependents...)
			if tc.change != nil {
				tc.change(made)
			}
			if got := Release(made, newDependent(tc.released), tc.peers, noon); got != tc.unneeded {
				t.Errorf("unneeded: %v", got)
			}
			spec := made.BindingSpec()
			var left []string
			for _, snapshot := range spec.RequiredBy {
				left = append(left, snapshot.Name)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("required by (-want +got):\n%s", diff)
			}
			if spec.ConflictResolution != tc.terms.ConflictResolution {
				t.Errorf("conflict resolution %s", spec.ConflictResolution)
			}
		})
	}
}

func TestBindingWithoutDependentsIsNotUnneeded(t *testing.T) {
	made := newAttachedBinding(t, newDependent("a"))
	made.BindingSpec().RequiredBy = nil
	if Release(made, newDependent("a"), OtherDependents{}, noon) {
		t.Error("a binding without dependents counts as attached")
	}
}

// TestSharedLabelStaysForRemainingDependent removes one of two dependents that have the same label.
// This is possible because label names contain hashes.
func TestSharedLabelStaysForRemainingDependent(t *testing.T) {
	one, other := collidingNames()
	made := newAttachedBinding(t, newDependent(one), newDependent(other))
	Release(made, newDependent(one), OtherDependents{Existing: []*workv1alpha2.ResourceBinding{newDependent(other)}}, noon)
	if made.GetLabels()[dependedByLabel("shop", other)] == "" {
		t.Errorf("labels %v", made.GetLabels())
	}
}

// collidingNames returns two names that result in the same label.
func collidingNames() (one, other string) {
	seen := map[string]string{}
	for i := 0; ; i++ {
		name := "n" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26))
		label := dependedByLabel("shop", name)
		if before, ok := seen[label]; ok && before != name {
			return before, name
		}
		seen[label] = name
	}
}

func TestOverwriteRequiresRightToTakeOver(t *testing.T) {
	otherNamespace := newDependent("a", overwriting)
	otherNamespace.Namespace = "bank"
	operator := newDependent("a", overwriting)
	operator.Namespace, operator.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = "bank", "everything"
	shared := referenceTo(newObject("v1", "Namespace", "", "shop"))
	tests := map[string]struct {
		object    workv1alpha2.ObjectReference
		dependent *workv1alpha2.ResourceBinding
		want      policyv1alpha1.ConflictResolution
	}{
		"a dependent in the same namespace":          {referenceTo(settingsConfigMap()), newDependent("a", overwriting), policyv1alpha1.ConflictOverwrite},
		"a dependent in another namespace":           {referenceTo(settingsConfigMap()), otherNamespace, policyv1alpha1.ConflictAbort},
		"a dependent of an administrator":            {referenceTo(settingsConfigMap()), operator, policyv1alpha1.ConflictOverwrite},
		"a Namespace":                                {shared, newDependent("a", overwriting), policyv1alpha1.ConflictAbort},
		"a Namespace, dependent of an administrator": {shared, operator, policyv1alpha1.ConflictOverwrite},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := MergeSettings(tc.object, []*workv1alpha2.ResourceBinding{tc.dependent}).ConflictResolution; got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestSettingsConflict(t *testing.T) {
	tests := map[string]struct {
		dependents []*workv1alpha2.ResourceBinding
		want       string
	}{
		"one dependent":                   {[]*workv1alpha2.ResourceBinding{newDependent("a", overwriting)}, ""},
		"equal settings":                  {[]*workv1alpha2.ResourceBinding{newDependent("a", preserving), newDependent("b", preserving)}, ""},
		"different conflict resolutions":  {[]*workv1alpha2.ResourceBinding{newDependent("b"), newDependent("a", overwriting)}, "the bindings that require this one differ: ConflictResolution conflicted (Overwrite vs Abort): Overwrite for shop/a, Abort for shop/b; Overwrite is used"},
		"different settings for deletion": {[]*workv1alpha2.ResourceBinding{newDependent("c", preserving), newDependent("a", preserving), newDependent("b")}, "the bindings that require this one differ: PreserveResourcesOnDeletion conflicted (true vs false): true for shop/a, shop/c, false for shop/b; true is used"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := SettingsConflict(referenceTo(settingsConfigMap()), tc.dependents); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestReleaseDependsOnRemainingDependentsOnly checks that after any sequence of additions and removals,
// the binding depends only on the remaining dependents, apart from their order, and that no dependent
// remains after the last removal.
func TestReleaseDependsOnRemainingDependentsOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		made, present := binding.New(true), map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
		peersWithout := func(apart types.NamespacedName) (peers OtherDependents) {
			for other, each := range present {
				if other != apart {
					peers.Existing = append(peers.Existing, each)
				}
			}
			return peers
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := names.Draw(t, "dependent")
			if rapid.Bool().Draw(t, "attach") {
				each := newDependent(name, targetClusters(rapid.SliceOfN(rapid.SampledFrom([]string{"m1", "m2"}), 0, 2).Draw(t, "clusters")...))
				if rapid.Bool().Draw(t, "overwrites") {
					overwriting(each)
				}
				if rapid.Bool().Draw(t, "preserves") {
					preserving(each)
				}
				if err := Attach(made, settingsConfigMap(), each, peersWithout(shopKey(name)), noon); err != nil {
					t.Fatal(err)
				}
				present[shopKey(name)] = each
				continue
			}
			was := len(made.BindingSpec().RequiredBy)
			delete(present, shopKey(name))
			unneeded := Release(made, newDependent(name), peersWithout(shopKey(name)), noon)
			if unneeded != (was > 0 && len(present) == 0) {
				t.Fatalf("unneeded is %v with %d of %d remaining", unneeded, len(present), was)
			}
		}
		spec := made.BindingSpec()
		if len(spec.RequiredBy) != len(present) {
			t.Fatalf("required by %d, want %d", len(spec.RequiredBy), len(present))
		}
		var all []*workv1alpha2.ResourceBinding
		for _, snapshot := range spec.RequiredBy {
			each := present[DependentKey(snapshot)]
			all = append(all, each)
			if diff := cmp.Diff(each.Spec.Clusters, snapshot.Clusters); len(each.Spec.Clusters) > 0 && diff != "" {
				t.Fatalf("clusters (-want +got):\n%s", diff)
			}
		}
		if len(all) > 0 && (spec.ConflictResolution != MergeSettings(spec.Resource, all).ConflictResolution || *spec.PreserveResourcesOnDeletion != MergeSettings(spec.Resource, all).PreserveResourcesOnDeletion) {
			t.Fatalf("terms %s %v of %+v", spec.ConflictResolution, *spec.PreserveResourcesOnDeletion, MergeSettings(spec.Resource, all))
		}
		for label := range made.GetLabels() {
			if isDependedByLabel(label) && len(present) == 0 {
				t.Fatalf("label %s remains", label)
			}
		}
	})
}
