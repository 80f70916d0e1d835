package binding

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

const bindingPatch = "patch metadata of ResourceBinding"

// isRenderingComplete reports whether another process, which knows only the stored objects, finds
// that the rendering is complete.
func (f *fixture) isRenderingComplete() bool {
	f.t.Helper()
	var works []*workv1alpha1.Work
	for _, each := range f.works() {
		works = append(works, &each)
	}
	return work.RenderingOf(f.binding()).IsComplete(works)
}

// Other controllers read from stored objects whether the Works are current. Normally the Works
// themselves show this without a further write.
func TestStoredObjectsShowThatWorksAreCurrent(t *testing.T) {
	scale := func(b *workv1alpha2.ResourceBinding) {
		b.Generation, b.Spec.Replicas, b.Spec.Clusters[0].Replicas = 2, 3, 3
	}
	tests := map[string]struct {
		change func(*fixture)
		// isShown is true if the Works still show that they are current after the change.
		isShown bool
		want    []string
	}{
		"no change": {change: func(*fixture) {}, isShown: true},
		"a change that does not concern Works": {
			change: func(w *fixture) {
				w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.SchedulerName = 2, "other" })
			},
			isShown: true,
		},
		"a changed setting": {
			change: func(w *fixture) {
				w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.PreserveResourcesOnDeletion = 2, new(true) })
			},
			want: []string{"update *v1alpha1.Work", "update *v1alpha1.Work"},
		},
		"replicas that the manifest does not have": {
			change: func(w *fixture) { w.updateBinding(scale) }, want: []string{bindingPatch},
		},
		"a template that only has another finalizer": {
			change: func(w *fixture) {
				template := w.updateTemplate(func(d *appsv1.Deployment) { d.Finalizers = []string{"example.io/wait"} })
				w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
					b.Generation, b.Spec.Resource.ResourceVersion = 2, template.ResourceVersion
				})
			},
			want: []string{bindingPatch},
		},
		"Works of an earlier release": {
			change: func(w *fixture) {
				for _, each := range w.works() {
					delete(each.Annotations, workv1alpha1.RenderedFromAnnotation)
					w.update(&each)
				}
			},
			want: []string{bindingPatch},
		},
		"a failure of every cluster": {
			change: func(w *fixture) {
				w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.Resource.Namespace = 2, "bank" })
			},
			want: []string{bindingPatch},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
			w.reconcile()
			if !w.isRenderingComplete() {
				t.Fatal("new Works do not show that they are current")
			}
			tc.change(w)
			if got := w.isRenderingComplete(); got != tc.isShown {
				t.Errorf("complete before the reconcile: %t", got)
			}
			_, requests := w.reconcile()
			if diff := cmp.Diff(tc.want, requests, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if !w.isRenderingComplete() {
				t.Error("not complete after the reconcile")
			}
			if _, requests := w.reconcile(); len(requests) != 0 {
				t.Errorf("the next reconcile sent %v", requests)
			}
		})
	}
}

func TestReportWaitsForCurrentCacheAndDeletions(t *testing.T) {
	works := schema.GroupResource{Resource: "works"}
	tests := map[string]struct {
		// failure is returned when Works are created. deletion is returned when Works are deleted.
		failure, deletion error
		want              map[string]string
	}{
		"a stale cache records nothing":               {failure: apierrors.NewAlreadyExists(works, "web")},
		"a rejected Work is a failure of its cluster": {failure: errors.New("quota exceeded"), want: map[string]string{"m2": "quota exceeded"}},
		"a failed deletion is no failure of a target": {deletion: errors.New("forbidden")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
			w.reconcile()
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Generation, b.Spec.Clusters[0].Name = 2, "m2" })
			w.karmada = interceptor.NewClient(w.store.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
					if tc.failure != nil {
						return tc.failure
					}
					return c.Create(ctx, object, o...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
					if tc.deletion != nil {
						return tc.deletion
					}
					return c.Delete(ctx, object, o...)
				},
			})
			_, _ = w.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-deployment"}})
			if diff := cmp.Diff(len(tc.want), len(w.recordedFailures())); diff != "" {
				t.Errorf("recorded failures %v (-want +got):\n%s", w.recordedFailures(), diff)
			}
			if got := w.binding().Annotations[workv1alpha2.RenderedGenerationAnnotation]; got != "" {
				t.Errorf("generation %q is recorded", got)
			}
		})
	}
}

// The cache may contain the binding without the record that this process wrote last. If a reconcile
// of that binding finds nothing to record, it sees no record to remove, so the outdated record
// would stay forever.
func TestReconcileWaitsForOwnRecord(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"), invalidOverride("m1"))
	before := w.binding()
	w.reconcile()
	if err := w.store.Delete(t.Context(), invalidOverride()); err != nil {
		t.Fatal(err)
	}
	lagging := interceptor.NewClient(w.store.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if into, ok := object.(*workv1alpha2.ResourceBinding); ok {
				before.DeepCopyInto(into)
				return nil
			}
			return c.Get(ctx, key, object, o...)
		},
	})
	w.karmada = lagging
	if result, requests := w.reconcile(); len(requests) != 0 || result != loop.StaleResult() {
		t.Errorf("with a lagging cache: %v, %v", requests, result)
	}
	w.karmada = w.store
	w.reconcile()
	if left := w.recordedFailures(); len(left) != 0 {
		t.Errorf("still recorded: %v", left)
	}
}
