package binding

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// deleteWithoutFinalizer removes the finalizer of the binding and deletes the binding.
func (f *fixture) deleteWithoutFinalizer() {
	f.t.Helper()
	f.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := f.store.Delete(f.t.Context(), bindingTo()); err != nil {
		f.t.Fatal(err)
	}
}

func TestOrphansAreDeletedAfterGracePeriod(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	w.deleteWithoutFinalizer()
	if result, requests := w.reconcile(); len(requests) != 0 || result.RequeueAfter != orphanGracePeriod {
		t.Errorf("at once: got %v, %v", result, requests)
	}
	w.currentTime = w.currentTime.Add(orphanGracePeriod - time.Second)
	if result, requests := w.reconcile(); len(requests) != 0 || result.RequeueAfter != time.Second {
		t.Errorf("one second before the end: got %v, %v", result, requests)
	}
	w.currentTime = w.currentTime.Add(time.Second)
	if _, requests := w.reconcile(); len(requests) != 1 || len(w.clustersWithWorks()) != 0 {
		t.Errorf("after the grace period: %v, Works are left in %v", requests, w.clustersWithWorks())
	}
	if len(w.orphans.deletedSince) != 0 {
		t.Error("the tracker still holds the binding")
	}
}

func TestOrphansAreKeptWithoutProofOfAbsence(t *testing.T) {
	bindings := schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}
	cases := map[string]struct {
		// prepare runs before the binding is deleted in the cache.
		prepare func(*fixture)
		// live replaces answers of the API server, so that they differ from the cache.
		live  interceptor.Funcs
		fails bool
	}{
		"the API server has the binding": {
			live: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return nil
			}},
		},
		"the API server does not answer": {
			live: interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return errors.New("connection refused")
			}},
			fails: true,
		},
		"the API server does not serve bindings": {
			live: interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return apierrors.NewNotFound(bindings, "")
			}},
			fails: true,
		},
		"another binding has the id": {prepare: func(w *fixture) {
			other := bindingTo()
			other.Name, other.UID = "moved", "binding-2"
			if err := w.store.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}},
		"the Work has no id": {prepare: func(w *fixture) {
			list := &workv1alpha1.WorkList{}
			if err := w.store.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			delete(list.Items[0].Labels, workv1alpha2.ResourceBindingPermanentIDLabel)
			if err := w.store.Update(t.Context(), &list.Items[0]); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
			w.reconcile()
			if tc.prepare != nil {
				tc.prepare(w)
			}
			w.deleteWithoutFinalizer()
			w.reconcile()
			w.currentTime = w.currentTime.Add(orphanGracePeriod)
			w.karmadaReader = interceptor.NewClient(w.store.(client.WithWatch), tc.live)
			if _, err := w.collectOrphans(t.Context(), client.ObjectKeyFromObject(bindingTo())); (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]string{"m1"}, w.clustersWithWorks()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecreatedBindingTakesOverOrphans(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	w.reconcile()
	ids := w.workIDs()
	w.deleteWithoutFinalizer()
	w.reconcile()
	recreated := bindingTo()
	recreated.UID, recreated.ResourceVersion = "binding-2", ""
	recreated.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "id-2"
	if err := w.store.Create(t.Context(), recreated); err != nil {
		t.Fatal(err)
	}
	if _, requests := w.reconcile(); len(requests) != 0 {
		t.Errorf("before it is scheduled: %v", requests)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = bindingTo("m1").Spec.Clusters })
	_, requests := w.reconcile()
	if diff := cmp.Diff([]string{"delete *v1alpha1.Work", "update *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	for id := range w.workIDs() {
		if !ids[id] {
			t.Errorf("the Work got another id %s", id)
		}
	}
	if len(w.orphans.deletedSince) != 0 {
		t.Error("the tracker still holds the binding")
	}
}
