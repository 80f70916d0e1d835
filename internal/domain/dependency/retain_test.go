package dependency

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// suspended suspends dispatching to the given clusters or, without clusters, to all clusters.
func suspended(clusters ...string) dependentOption {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{}
		if len(clusters) == 0 {
			b.Spec.Suspension.Dispatching = new(true)
			return
		}
		b.Spec.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: clusters}
	}
}

func evictedFrom(cluster string) dependentOption {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: cluster, PurgeMode: policyv1alpha1.PurgeModeGracefully}}
	}
}

func deleted(finalizers ...string) dependentOption {
	return func(b *workv1alpha2.ResourceBinding) {
		b.DeletionTimestamp, b.Finalizers = &metav1.Time{Time: noon}, finalizers
	}
}

// The dependent ran in m1 and m2 when the object was attached, and no longer refers to the object.
func TestReleaseRetainsClustersOfOutdatedCopies(t *testing.T) {
	tests := map[string]struct {
		now       []dependentOption
		kept      []string
		suspended []string
	}{
		"current copies":                   {},
		"a suspended cluster":              {now: []dependentOption{suspended("m1")}, kept: []string{"m1"}, suspended: []string{"m1"}},
		"all clusters are suspended":       {now: []dependentOption{suspended()}, kept: []string{"m1", "m2"}, suspended: []string{"m1", "m2"}},
		"a suspended cluster that it left": {now: []dependentOption{targetClusters("m3"), suspended("m1")}, kept: []string{"m1"}, suspended: []string{"m1"}},
		"a suspended cluster without this": {now: []dependentOption{suspended("m3")}},
		"only the scheduling is suspended": {now: []dependentOption{func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}}},
		"an eviction":                           {now: []dependentOption{targetClusters("m2"), evictedFrom("m1")}, kept: []string{"m1"}},
		"an eviction from a cluster in use":     {now: []dependentOption{targetClusters("m1", "m2"), evictedFrom("m1")}},
		"an ended eviction":                     {now: []dependentOption{targetClusters("m2")}},
		"propagateDeps was removed":             {now: []dependentOption{suspended("m1"), func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }}, kept: []string{"m1"}, suspended: []string{"m1"}},
		"a suspended dependent in deletion":     {now: []dependentOption{suspended("m1"), deleted(workv1alpha2.BindingControllerFinalizer)}, kept: []string{"m1"}, suspended: []string{"m1"}},
		"a deleted dependent without Works":     {now: []dependentOption{suspended("m1"), deleted(workv1alpha2.BindingDependenciesDistributorFinalizer)}},
		"an evicted dependent in deletion":      {now: []dependentOption{targetClusters("m2"), evictedFrom("m1"), deleted(workv1alpha2.BindingControllerFinalizer)}},
		"a dependent of which only a name left": {now: []dependentOption{func(b *workv1alpha2.ResourceBinding) { b.Labels, b.Spec = nil, workv1alpha2.ResourceBindingSpec{} }}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := newAttachedBinding(t, newDependent("a", targetClusters("m1", "m2")))
			dependent := newDependent("a", append([]dependentOption{targetClusters("m1", "m2")}, tc.now...)...)
			for i := range 2 {
				before := made.DeepCopyObject()
				if unneeded := Release(made, dependent, OtherDependents{}, noon.Add(time.Duration(i)*time.Hour)); unneeded != (len(tc.kept) == 0 && i == 0) {
					t.Errorf("unneeded: %v", unneeded)
				}
				checkClusters(t, made, tc.kept, tc.suspended)
				if diff := cmp.Diff(before, made.DeepCopyObject()); i > 0 && diff != "" {
					t.Errorf("the second release changes the binding: %s", diff)
				}
			}
			for _, cluster := range []string{"m1", "m2"} {
				if left := !sets.New(tc.kept...).Has(cluster); binding.HasDeparted(made, cluster, noon) != left {
					t.Errorf("departed from %s: %v", cluster, !left)
				}
			}
			if unneeded := Release(made, newDependent("a"), OtherDependents{}, noon); len(tc.kept) > 0 && !unneeded {
				t.Error("the binding is needed after the end of the suspension or eviction")
			}
			checkClusters(t, made, nil, nil)
		})
	}
}

func checkClusters(t *testing.T, attached binding.Object, required, suspended []string) {
	t.Helper()
	if diff := cmp.Diff(sets.New(required...), binding.ExpectedClusters(attached.BindingSpec())); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	got := sets.New[string]()
	for _, cluster := range []string{"m1", "m2", "m3"} {
		if binding.IsDispatchSuspended(attached, cluster) {
			got.Insert(cluster)
		}
	}
	if diff := cmp.Diff(sets.New(suspended...), got); diff != "" {
		t.Errorf("suspended clusters (-want +got):\n%s", diff)
	}
}

func TestSuspensionsOfDependents(t *testing.T) {
	tests := map[string]struct {
		dependents []*workv1alpha2.ResourceBinding
		own        *workv1alpha2.Suspension
		want       []string
	}{
		"none is suspended":               {dependents: []*workv1alpha2.ResourceBinding{newDependent("a")}},
		"one of two in the same cluster":  {dependents: []*workv1alpha2.ResourceBinding{newDependent("a", suspended("m1")), newDependent("b")}, want: []string{"m1"}},
		"a cluster of the other":          {dependents: []*workv1alpha2.ResourceBinding{newDependent("a", suspended()), newDependent("b", targetClusters("m2"))}, want: []string{"m1"}},
		"a cluster without the dependent": {dependents: []*workv1alpha2.ResourceBinding{newDependent("a", suspended("m2")), newDependent("b", targetClusters("m2"))}},
		"both in different clusters":      {dependents: []*workv1alpha2.ResourceBinding{newDependent("a", suspended()), newDependent("b", targetClusters("m2", "m3"), suspended("m3"))}, want: []string{"m1", "m3"}},
		"its own suspension stays":        {dependents: []*workv1alpha2.ResourceBinding{newDependent("a", suspended())}, own: newDependent("x", suspended("m2")).Spec.Suspension, want: []string{"m1", "m2"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			made := newAttachedBinding(t, tc.dependents...)
			made.BindingSpec().Suspension = tc.own
			required := sets.New[string]()
			for _, each := range tc.dependents {
				for _, target := range each.Spec.Clusters {
					required.Insert(target.Name)
				}
			}
			checkClusters(t, made, sets.List(required), tc.want)
			for _, each := range tc.dependents {
				each.Spec.Suspension = nil
				if err := Attach(made, settingsConfigMap(), each, OtherDependents{}, noon); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.own, made.BindingSpec().Suspension); diff != "" || binding.HasSuspendedDependents(made) {
				t.Errorf("after the resume: annotations %v, own suspension (-want +got):\n%s", made.GetAnnotations(), diff)
			}
		})
	}
}

func TestDeletedDependentIsNotSuspended(t *testing.T) {
	made := newAttachedBinding(t, newDependent("a", suspended()), newDependent("b"))
	if err := Attach(made, settingsConfigMap(), newDependent("b"), OtherDependents{Deleted: sets.New(shopKey("a"))}, noon); err != nil {
		t.Fatal(err)
	}
	checkClusters(t, made, []string{"m1"}, nil)
}
