package binding

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/loop"
)

// failingGetClient returns an error when a certain object is read.
type failingGetClient struct {
	client.Client
	name string
}

func (f failingGetClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if key.Name == f.name {
		return errors.New("no answer")
	}
	return f.Client.Get(ctx, key, object, o...)
}

func TestOrphanIsDeletedOnlyIfStoredBindingMatches(t *testing.T) {
	another := bindingTo()
	another.UID = "binding-0"
	cases := map[string]struct {
		stored []client.Object
		want   error
	}{
		"the stored binding equals the cached one": {[]client.Object{bindingTo()}, nil},
		"the stored binding has another UID":       {[]client.Object{another}, loop.ErrStale},
		"the binding is not stored":                {nil, loop.ErrStale},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
			w.reconcile()
			w.karmadaReader = newFixture(t, tc.stored...).store
			works, err := w.worksOf(t.Context(), bindingTo())
			if err != nil || len(works) != 1 {
				t.Fatalf("got %v, %v", works, err)
			}
			if err := w.deleteOrphans(t.Context(), bindingTo(), works); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if kept := len(w.clustersWithWorks()) > 0; kept != (tc.want != nil) {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

func TestWorkWithIDOfOtherBindingIsKept(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	owner := bindingTo("m1")
	owner.Namespace, owner.UID, owner.Labels = "other", "binding-2", map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-2"}
	work := w.works()[0]
	work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "id-2"
	for _, err := range []error{w.store.Create(t.Context(), owner), w.store.Update(t.Context(), &work)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.deleteOrphans(t.Context(), w.storedBinding(), []*workv1alpha1.Work{&work}); err != nil {
		t.Error(err)
	}
	if _, err := w.finalize(t.Context(), w.storedBinding(), []*workv1alpha1.Work{&work}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// storedBinding returns the stored binding.
func (f *fixture) storedBinding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	found := bindingTo()
	if err := f.store.Get(f.t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		f.t.Fatal(err)
	}
	return found
}

func TestWorkOfUnreadableNamespaceIsKept(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	w.setOwners([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "mall", UID: "mall-1", Controller: new(true)}})
	w.templateReader = template.NewReader(nil, failingGetClient{w.store, "mall"})
	works, err := w.worksOf(t.Context(), bindingTo())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.deleteWorks(t.Context(), works); err == nil {
		t.Error("an unreadable Namespace returns no error")
	}
	if diff := cmp.Diff([]string{"m1"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestUnreadableClusterIsNotDeclaredDead(t *testing.T) {
	bound := bindingTo()
	bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeDirectly},
	}
	w := newFixture(t, cluster("m1"))
	w.karmada = failingGetClient{w.store, "m1"}
	if diff := cmp.Diff([]string{"m1", "m2"}, sets.List(w.clustersToPurge(t.Context(), &bound.Spec))); diff != "" {
		t.Errorf("clusters to purge (-want +got):\n%s", diff)
	}
}
