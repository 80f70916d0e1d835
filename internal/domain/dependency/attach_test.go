package dependency

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

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

// attached is the binding of the settings as the given dependents leave it.
func attached(t testing.TB, dependents ...*workv1alpha2.ResourceBinding) binding.Object {
	t.Helper()
	made := binding.New(true)
	var peers Peers
	for _, each := range dependents {
		if err := Attach(made, settings(), each, peers); err != nil {
			t.Fatal(err)
		}
		peers.Present = append(peers.Present, each)
	}
	return made
}

func TestTheFirstDependentMakesTheBinding(t *testing.T) {
	made := attached(t, dependent("nginx-deployment", in("m1", "m2")))
	made.SetAnnotations(nil) // the state of the object is a hash
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

func TestWhatIsNeededStaysInAClusterUntilItsDependentHasLeft(t *testing.T) {
	leaving := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "m1", Replicas: new(int32(3)), PurgeMode: policyv1alpha1.PurgeModeGracefully},
			{FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "m3"},
		}
	}
	made := attached(t, dependent("web", in("m3"), leaving))
	want := []workv1alpha2.TargetCluster{{Name: "m3", Replicas: 1}, {Name: "m1", Replicas: 3}, {Name: "m2"}}
	if diff := cmp.Diff(want, made.BindingSpec().RequiredBy[0].Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if err := Attach(made, settings(), dependent("web", in("m3")), Peers{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[:1], made.BindingSpec().RequiredBy[0].Clusters); diff != "" {
		t.Errorf("clusters afterwards (-want +got):\n%s", diff)
	}
}

func TestABindingOfSomethingWithoutNamespace(t *testing.T) {
	made := binding.New(false)
	if err := Attach(made, object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:view"), dependent("web"), Peers{}); err != nil {
		t.Fatal(err)
	}
	if made.GetName() != "system.view-clusterrole" || made.GetFinalizers()[0] != "karmada.io/cluster-resource-binding-controller" {
		t.Errorf("the binding is %s with %v", made.GetName(), made.GetFinalizers())
	}
}

func TestASecondDependentJoins(t *testing.T) {
	made := attached(t, dependent("a", in("m1")), dependent("b", in("m2"), overwriting, preserving))
	spec := made.BindingSpec()
	if diff := cmp.Diff(sets.New("m1", "m2"), binding.Expected(spec)); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if spec.ConflictResolution != policyv1alpha1.ConflictOverwrite || !*spec.PreserveResourcesOnDeletion {
		t.Errorf("terms: %s, %v", spec.ConflictResolution, *spec.PreserveResourcesOnDeletion)
	}
	// The first one moves and keeps its place.
	if err := Attach(made, settings(), dependent("a", in("m3")), Peers{Present: []*workv1alpha2.ResourceBinding{dependent("b", overwriting)}}); err != nil {
		t.Fatal(err)
	}
	if KeyOf(spec.RequiredBy[0]) != key("a") || spec.RequiredBy[0].Clusters[0].Name != "m3" || len(spec.RequiredBy) != 2 {
		t.Errorf("required by %+v", spec.RequiredBy)
	}
}

func TestWhatFollowsTheObject(t *testing.T) {
	claim := policy.Claim{Namespace: "shop", Name: "p", ID: "id-p"}
	tests := map[string]struct {
		binding func(binding.Object)
		object  func(o map[string]any)
		version string
	}{
		"a change of the object is taken over":             {nil, func(o map[string]any) { o["data"] = map[string]any{"a": "b"} }, "8"},
		"not one of its status":                            {nil, func(o map[string]any) { o["status"] = map[string]any{"a": "b"} }, "7"},
		"not when a policy claims it":                      {func(b binding.Object) { claim.Apply(b) }, func(o map[string]any) { o["data"] = "x" }, "7"},
		"again when the policy has let it go":              {func(b binding.Object) { b.BindingSpec().Placement = &policyv1alpha1.Placement{} }, func(o map[string]any) { o["data"] = "x" }, "8"},
		"also when somebody wrote the binding without it":  {func(b binding.Object) { b.SetAnnotations(nil) }, func(o map[string]any) { o["status"] = "x" }, "8"},
		"not in the version of another dependent as well":  {func(b binding.Object) { join(b, "other") }, func(o map[string]any) { o["apiVersion"] = "v2" }, "7"},
		"in another version when it is the only dependent": {nil, func(o map[string]any) { o["apiVersion"] = "v2" }, "8"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := attached(t, dependent("web"))
			if tc.binding != nil {
				tc.binding(made)
			}
			changed := settings()
			changed.SetResourceVersion("8")
			tc.object(changed.Object)
			if err := Attach(made, changed, dependent("web"), Peers{}); err != nil {
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

func join(attached binding.Object, name string) {
	spec := attached.BindingSpec()
	spec.RequiredBy = append(spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name})
}

func TestWhatThePolicyDecidesIsLeftToIt(t *testing.T) {
	made := attached(t, dependent("a"))
	spec := made.BindingSpec()
	spec.Placement, spec.ConflictResolution, spec.PreserveResourcesOnDeletion = &policyv1alpha1.Placement{}, policyv1alpha1.ConflictAbort, nil
	policy.Claim{Name: "p", ID: "id-p"}.Apply(made)
	if err := Attach(made, settings(), dependent("a", overwriting, preserving, in("m2")), Peers{}); err != nil {
		t.Fatal(err)
	}
	if spec.ConflictResolution != policyv1alpha1.ConflictAbort || spec.PreserveResourcesOnDeletion != nil {
		t.Errorf("terms: %s, %v", spec.ConflictResolution, spec.PreserveResourcesOnDeletion)
	}
	if spec.RequiredBy[0].Clusters[0].Name != "m2" {
		t.Errorf("required by %+v", spec.RequiredBy)
	}
	if Release(made, key("a"), Peers{}) {
		t.Error("a claimed binding is needless")
	}
	if len(spec.RequiredBy) != 0 || slices.ContainsFunc(slices.Collect(maps.Keys(made.GetLabels())), isMark) {
		t.Errorf("something is left: %+v, %v", spec.RequiredBy, made.GetLabels())
	}
}

func isMark(label string) bool { return strings.HasPrefix(label, workv1alpha2.DependedByLabelPrefix) }

func TestABindingOfSomethingElseIsLeftAlone(t *testing.T) {
	tests := map[string]struct {
		change func(binding.Object)
		want   any
	}{
		"of an earlier object of the name": {func(b binding.Object) { b.GetOwnerReferences()[0].UID = "earlier" }, new(*policy.OwnerError)},
		"of another kind of the name": {func(b binding.Object) {
			owners := b.GetOwnerReferences()
			owners[0].UID = "other"
			b.SetOwnerReferences(owners)
			b.BindingSpec().Resource.APIVersion = "example.io/v1"
		}, new(*policy.CollisionError)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := attached(t, dependent("web"))
			tc.change(made)
			before := made.DeepCopyObject()
			err := Attach(made, settings(), dependent("other"), Peers{})
			if !errors.As(err, tc.want) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(before, made.DeepCopyObject()); diff != "" {
				t.Errorf("it was changed: %s", diff)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	tests := map[string]struct {
		dependents []*workv1alpha2.ResourceBinding
		change     func(binding.Object)
		leaving    string
		peers      Peers
		needless   bool
		terms      Terms
		left       []string
	}{
		"the last one leaves a needless binding": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a", overwriting)}, leaving: "a", needless: true,
			terms: Terms{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"what remains says how it goes on": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a", overwriting, preserving), dependent("b")}, leaving: "a",
			peers: Peers{Present: []*workv1alpha2.ResourceBinding{dependent("b")}},
			terms: Terms{ConflictResolution: policyv1alpha1.ConflictAbort}, left: []string{"b"},
		},
		"those that are gone go along": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a"), dependent("b")}, leaving: "a",
			peers: Peers{Gone: sets.New(key("b"))}, needless: true,
			terms: Terms{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"one that is not known to be gone stays": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a"), dependent("b")}, leaving: "a",
			terms: Terms{ConflictResolution: policyv1alpha1.ConflictAbort}, left: []string{"b"},
		},
		"a binding that is scheduled is needed": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a")}, leaving: "a",
			change: func(b binding.Object) { b.BindingSpec().Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}} },
			terms:  Terms{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"one that is being evicted too": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a")}, leaving: "a",
			change: func(b binding.Object) {
				b.BindingSpec().GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
			},
			terms: Terms{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"one of a policy that is gone too": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a", overwriting)}, leaving: "a",
			change: func(b binding.Object) { b.BindingSpec().Placement = &policyv1alpha1.Placement{} },
			terms:  Terms{ConflictResolution: policyv1alpha1.ConflictOverwrite},
		},
		"one of a service over several clusters too": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a")}, leaving: "a",
			change: func(b binding.Object) {
				b.SetLabels(with(b.GetLabels(), "multiclusterservice.karmada.io/permanent-id", "x"))
			},
			terms: Terms{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
		"one that somebody else owns too": {
			dependents: []*workv1alpha2.ResourceBinding{dependent("a")}, leaving: "a",
			change: func(b binding.Object) { b.SetOwnerReferences(nil) },
			terms:  Terms{ConflictResolution: policyv1alpha1.ConflictAbort},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := attached(t, tc.dependents...)
			if tc.change != nil {
				tc.change(made)
			}
			if got := Release(made, key(tc.leaving), tc.peers); got != tc.needless {
				t.Errorf("needless: %v", got)
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

func TestABindingThatNobodyRequiredIsNotNeedless(t *testing.T) {
	made := attached(t, dependent("a"))
	made.BindingSpec().RequiredBy = nil
	if Release(made, key("a"), Peers{}) {
		t.Error("a binding that listed nobody is taken for one of ours")
	}
}

// Names of marks are short: two dependents may have the same.
func TestAMarkStaysWhileSomebodyBearsIt(t *testing.T) {
	one, other := collision()
	made := attached(t, dependent(one), dependent(other))
	Release(made, key(one), Peers{Present: []*workv1alpha2.ResourceBinding{dependent(other)}})
	if made.GetLabels()[labelOf("shop", other)] == "" {
		t.Errorf("labels %v", made.GetLabels())
	}
}

// collision finds two names that are encoded alike: digits and letters of the
// alphabet overlap, so that there are some.
func collision() (one, other string) {
	seen := map[string]string{}
	for i := 0; ; i++ {
		name := "n" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26))
		label := labelOf("shop", name)
		if before, ok := seen[label]; ok && before != name {
			return before, name
		}
		seen[label] = name
	}
}

func TestOverwriteCountsOnlyOfThoseThatMayTakeTheObjectOver(t *testing.T) {
	afar := dependent("a", overwriting)
	afar.Namespace = "bank"
	operator := dependent("a", overwriting)
	operator.Namespace, operator.Labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] = "bank", "everything"
	shared := referenceTo(object("v1", "Namespace", "", "shop"))
	tests := map[string]struct {
		object    workv1alpha2.ObjectReference
		dependent *workv1alpha2.ResourceBinding
		want      policyv1alpha1.ConflictResolution
	}{
		"one of the same namespace":             {referenceTo(settings()), dependent("a", overwriting), policyv1alpha1.ConflictOverwrite},
		"one of another namespace":              {referenceTo(settings()), afar, policyv1alpha1.ConflictAbort},
		"one of an administrator":               {referenceTo(settings()), operator, policyv1alpha1.ConflictOverwrite},
		"a Namespace":                           {shared, dependent("a", overwriting), policyv1alpha1.ConflictAbort},
		"a Namespace, wanted by administrators": {shared, operator, policyv1alpha1.ConflictOverwrite},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := TermsOf(tc.object, []*workv1alpha2.ResourceBinding{tc.dependent}).ConflictResolution; got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestDisagreement(t *testing.T) {
	tests := map[string]struct {
		dependents []*workv1alpha2.ResourceBinding
		want       string
	}{
		"one agrees with itself":     {[]*workv1alpha2.ResourceBinding{dependent("a", overwriting)}, ""},
		"two that want the same":     {[]*workv1alpha2.ResourceBinding{dependent("a", preserving), dependent("b", preserving)}, ""},
		"what to do about conflicts": {[]*workv1alpha2.ResourceBinding{dependent("b"), dependent("a", overwriting)}, "the bindings that require this one differ: ConflictResolution conflicted (Overwrite vs Abort): Overwrite for shop/a, Abort for shop/b; Overwrite is used"},
		"what to do in the end":      {[]*workv1alpha2.ResourceBinding{dependent("c", preserving), dependent("a", preserving), dependent("b")}, "the bindings that require this one differ: PreserveResourcesOnDeletion conflicted (true vs false): true for shop/a, shop/c, false for shop/b; true is used"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Disagreement(referenceTo(settings()), tc.dependents); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// However dependents come and go, the binding is what those that are left would
// make of it alone, up to the order of their coming; the last one leaves nothing.
func TestOnlyThoseThatAreLeftCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		made, present := binding.New(true), map[types.NamespacedName]*workv1alpha2.ResourceBinding{}
		peersWithout := func(apart types.NamespacedName) (peers Peers) {
			for other, each := range present {
				if other != apart {
					peers.Present = append(peers.Present, each)
				}
			}
			return peers
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			name := names.Draw(t, "who")
			if rapid.Bool().Draw(t, "comes") {
				each := dependent(name, in(rapid.SliceOfN(rapid.SampledFrom([]string{"m1", "m2"}), 0, 2).Draw(t, "clusters")...))
				if rapid.Bool().Draw(t, "overwrites") {
					overwriting(each)
				}
				if rapid.Bool().Draw(t, "preserves") {
					preserving(each)
				}
				if err := Attach(made, settings(), each, peersWithout(key(name))); err != nil {
					t.Fatal(err)
				}
				present[key(name)] = each
				continue
			}
			was := len(made.BindingSpec().RequiredBy)
			delete(present, key(name))
			needless := Release(made, key(name), peersWithout(key(name)))
			if needless != (was > 0 && len(present) == 0) {
				t.Fatalf("needless is %v with %d left of %d", needless, len(present), was)
			}
		}
		spec := made.BindingSpec()
		if len(spec.RequiredBy) != len(present) {
			t.Fatalf("required by %d, want %d", len(spec.RequiredBy), len(present))
		}
		var all []*workv1alpha2.ResourceBinding
		for _, snapshot := range spec.RequiredBy {
			each := present[KeyOf(snapshot)]
			all = append(all, each)
			if diff := cmp.Diff(each.Spec.Clusters, snapshot.Clusters); len(each.Spec.Clusters) > 0 && diff != "" {
				t.Fatalf("clusters (-want +got):\n%s", diff)
			}
		}
		if len(all) > 0 && (spec.ConflictResolution != TermsOf(spec.Resource, all).ConflictResolution || *spec.PreserveResourcesOnDeletion != TermsOf(spec.Resource, all).PreserveResourcesOnDeletion) {
			t.Fatalf("terms %s %v of %+v", spec.ConflictResolution, *spec.PreserveResourcesOnDeletion, TermsOf(spec.Resource, all))
		}
		for label := range made.GetLabels() {
			if isMark(label) && len(present) == 0 {
				t.Fatalf("label %s is left", label)
			}
		}
	})
}
