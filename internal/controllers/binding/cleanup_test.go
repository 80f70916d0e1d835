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
)

// silent answers no question about one object.
type silent struct {
	client.Client
	about string
}

func (s silent) Get(ctx context.Context, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
	if key.Name == s.about {
		return errors.New("no answer")
	}
	return s.Client.Get(ctx, key, object, o...)
}

func TestAnOrphanIsKeptUntilItsBindingAsStoredHasNoReasonForIt(t *testing.T) {
	another := bindingTo()
	another.UID = "binding-0"
	cases := map[string]struct {
		stored []client.Object
		want   error
	}{
		"a binding that is stored as it is seen":    {[]client.Object{bindingTo()}, nil},
		"a binding that is stored under another id": {[]client.Object{another}, errLag},
		"a binding that is not stored":              {nil, errLag},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
			w.pass()
			w.live = newWorld(t, tc.stored...).store
			works, err := w.worksOf(t.Context(), bindingTo())
			if err != nil || len(works) != 1 {
				t.Fatalf("got %v, %v", works, err)
			}
			if err := w.removeOrphans(t.Context(), bindingTo(), works); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if kept := len(w.clusters()) > 0; kept != (tc.want != nil) {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

func TestAWorkIsNotTakenFromTheBindingWhoseIdItBears(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	holder := bindingTo("m1")
	holder.Namespace, holder.UID, holder.Labels = "other", "binding-2", map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-2"}
	work := w.works()[0]
	work.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "id-2"
	for _, err := range []error{w.store.Create(t.Context(), holder), w.store.Update(t.Context(), &work)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.removeOrphans(t.Context(), w.bound(), []*workv1alpha1.Work{&work}); err != nil {
		t.Error(err)
	}
	if _, err := w.release(t.Context(), w.bound(), []*workv1alpha1.Work{&work}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

// bound is the binding as it is stored.
func (w *world) bound() *workv1alpha2.ResourceBinding {
	w.t.Helper()
	found := bindingTo()
	if err := w.store.Get(w.t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestTheWorkOfANamespaceOfWhichNothingIsKnownStays(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	w.own([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "mall", UID: "mall-1", Controller: new(true)}})
	w.templates = template.NewReader(nil, silent{w.store, "mall"})
	works, err := w.worksOf(t.Context(), bindingTo())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.remove(t.Context(), works); err == nil {
		t.Error("that nothing is known is not told")
	}
	if diff := cmp.Diff([]string{"m1"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestAClusterOfWhichNothingIsKnownWasNotGivenUp(t *testing.T) {
	bound := bindingTo()
	bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{
		{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly}, {FromCluster: "m2", PurgeMode: policyv1alpha1.PurgeModeDirectly},
	}
	w := newWorld(t, cluster("m1"))
	w.karmada = silent{w.store, "m1"}
	if diff := cmp.Diff([]string{"m1", "m2"}, sets.List(w.purged(t.Context(), &bound.Spec))); diff != "" {
		t.Errorf("to be empty first (-want +got):\n%s", diff)
	}
}
