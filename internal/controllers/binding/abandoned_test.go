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

// orphan removes the finalizer of the binding and the binding.
func (w *world) orphan() {
	w.t.Helper()
	w.change(func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	if err := w.store.Delete(w.t.Context(), bindingTo()); err != nil {
		w.t.Fatal(err)
	}
}

func TestWorksOfABindingThatWasForcedAwayAreCollectedAfterAWhile(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	w.orphan()
	if result, requests := w.pass(); len(requests) != 0 || result.RequeueAfter != abandonedAfter {
		t.Errorf("at once: got %v, %v", result, requests)
	}
	w.at = w.at.Add(abandonedAfter - time.Second)
	if result, requests := w.pass(); len(requests) != 0 || result.RequeueAfter != time.Second {
		t.Errorf("a second too early: got %v, %v", result, requests)
	}
	w.at = w.at.Add(time.Second)
	if _, requests := w.pass(); len(requests) != 1 || len(w.clusters()) != 0 {
		t.Errorf("in the end: %v, Works are left in %v", requests, w.clusters())
	}
	if len(w.abandoned.since) != 0 {
		t.Error("the binding is still remembered")
	}
}

func TestWorksAreNotCollectedWithoutProof(t *testing.T) {
	bindings := schema.GroupResource{Group: workv1alpha2.GroupName, Resource: "resourcebindings"}
	cases := map[string]struct {
		// prepare runs before the binding is gone from the cache.
		prepare func(*world)
		// live is what the API server says, when it is not what the cache says.
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
		"another binding has the id": {prepare: func(w *world) {
			other := bindingTo()
			other.Name, other.UID = "moved", "binding-2"
			if err := w.store.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
		}},
		"the Work has no id": {prepare: func(w *world) {
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
			w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
			w.pass()
			if tc.prepare != nil {
				tc.prepare(w)
			}
			w.orphan()
			w.pass()
			w.at = w.at.Add(abandonedAfter)
			w.live = interceptor.NewClient(w.store.(client.WithWatch), tc.live)
			if _, err := w.collect(t.Context(), client.ObjectKeyFromObject(bindingTo())); (err != nil) != tc.fails {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff([]string{"m1"}, w.clusters()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABindingMadeAnewTakesOverWhatItsPredecessorLeft(t *testing.T) {
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	w.pass()
	ids := w.ids()
	w.orphan()
	w.pass()
	anew := bindingTo()
	anew.UID, anew.ResourceVersion = "binding-2", ""
	anew.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "id-2"
	if err := w.store.Create(t.Context(), anew); err != nil {
		t.Fatal(err)
	}
	if _, requests := w.pass(); len(requests) != 0 {
		t.Errorf("before it is scheduled: %v", requests)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = bindingTo("m1").Spec.Clusters })
	_, requests := w.pass()
	if diff := cmp.Diff([]string{"delete *v1alpha1.Work", "update *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	for id := range w.ids() {
		if !ids[id] {
			t.Errorf("the Work got another id %s", id)
		}
	}
	if len(w.abandoned.since) != 0 {
		t.Error("the binding is still taken to be gone")
	}
}
