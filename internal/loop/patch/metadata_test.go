package patch

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func newLabelledWork() *workv1alpha1.Work {
	stored := newWork(`{"a":1}`)
	stored.Labels, stored.Annotations = map[string]string{"app": "web", "old": "1"}, map[string]string{"note": "kept"}
	stored.Finalizers = []string{"karmada.io/execution-controller", "example.com/other"}
	return stored
}

func TestObjectPatchesMetadata(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: "1"}
	tests := map[string]struct {
		change func(*workv1alpha1.Work)
		want   string
	}{
		"a status only":   {func(w *workv1alpha1.Work) { w.Status.Conditions = []metav1.Condition{{Type: "Applied"}} }, ""},
		"a label":         {func(w *workv1alpha1.Work) { w.Labels["app"] = "api" }, `{"metadata":{"labels":{"app":"api"},"resourceVersion":"999"}}`},
		"a removed label": {func(w *workv1alpha1.Work) { delete(w.Labels, "old") }, `{"metadata":{"labels":{"old":null},"resourceVersion":"999"}}`},
		"all annotations": {func(w *workv1alpha1.Work) { w.Annotations = nil }, `{"metadata":{"annotations":{"note":null},"resourceVersion":"999"}}`},
		"a finalizer":     {func(w *workv1alpha1.Work) { w.Finalizers = w.Finalizers[1:] }, `{"metadata":{"finalizers":["example.com/other"],"resourceVersion":"999"}}`},
		"all finalizers":  {func(w *workv1alpha1.Work) { w.Finalizers = nil }, `{"metadata":{"finalizers":null,"resourceVersion":"999"}}`},
		"an owner": {func(w *workv1alpha1.Work) { w.OwnerReferences = []metav1.OwnerReference{owner} },
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"shop","uid":"1"}],"resourceVersion":"999"}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			karmada := newFakeClient(t, func(object client.Object, change client.Patch) error {
				if _, ok := object.(*metav1.PartialObjectMetadata); !ok {
					t.Errorf("the response is decoded into %T", object)
				}
				data, err := change.Data(object)
				got = string(data)
				return err
			})
			before := &workv1alpha1.Work{}
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(newWork("{}")), before); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			test.change(after)
			changed, err := Object(t.Context(), karmada, before, after)
			if err != nil || changed != (test.want != "") {
				t.Errorf("changed %v, error %v", changed, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			stored := &workv1alpha1.Work{}
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(before), stored); err != nil {
				t.Fatal(err)
			}
			after.Status = stored.Status
			if diff := cmp.Diff(stored, after); diff != "" {
				t.Errorf("the stored object and the returned one differ (-stored +returned):\n%s", diff)
			}
			later := before.DeepCopy()
			later.Labels["later"] = "1"
			if _, err := Object(t.Context(), karmada, before, later); changed && !apierrors.IsConflict(err) {
				t.Errorf("a write of an older state returns %v, want a conflict", err)
			}
			before.ResourceVersion = ""
			if _, err := Object(t.Context(), karmada, before, later); !errors.Is(err, errNoVersion) {
				t.Errorf("a write without a precondition returns %v, want %v", err, errNoVersion)
			}
		})
	}
}

func newFakeClient(t *testing.T, onPatch func(client.Object, client.Patch) error) client.Client {
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(newLabelledWork()).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, change client.Patch, o ...client.PatchOption) error {
			if err := onPatch(object, change); err != nil {
				return err
			}
			return c.Patch(ctx, object, change, o...)
		},
	}).Build()
}

func BenchmarkMetadataChanges(b *testing.B) {
	before := newLabelledWork()
	after := before.DeepCopy()
	after.Finalizers = nil
	b.ReportAllocs()
	for b.Loop() {
		if !hasEqualContent(before, after) || len(metadataChanges(before, after)) != 1 {
			b.Fatal("not only the finalizers differ")
		}
	}
}

func TestDifference(t *testing.T) {
	stored := newLabelledWork()
	stored.ResourceVersion, stored.Spec.SuspendDispatching = "7", new(false)
	tests := map[string]struct {
		change func(*workv1alpha1.Work)
		want   string
	}{
		"a field of the spec": {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) },
			`{"metadata":{"resourceVersion":"7"},"spec":{"suspendDispatching":true}}`},
		"a removed field": {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = nil },
			`{"metadata":{"resourceVersion":"7"},"spec":{"suspendDispatching":null}}`},
		"a list, metadata and the status": {func(w *workv1alpha1.Work) {
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"a":2}`)
			w.Labels["app"], w.Status.Conditions = "api", []metav1.Condition{{Type: "Applied"}}
		}, `{"metadata":{"labels":{"app":"api"},"resourceVersion":"7"},"spec":{"workload":{"manifests":[{"a":2}]}}}`},
	}
	toUnstructured := func(w *workv1alpha1.Work) client.Object {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(w)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: content}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := stored.DeepCopy()
			test.change(after)
			before, unchanged := stored.DeepCopy(), after.DeepCopy()
			typed, err := difference(before, after)
			if err != nil || string(typed) != test.want {
				t.Errorf("patch %s (error %v), want %s", typed, err, test.want)
			}
			if diff := cmp.Diff([]*workv1alpha1.Work{stored, unchanged}, []*workv1alpha1.Work{before, after}); diff != "" {
				t.Errorf("the objects changed (-before +after):\n%s", diff)
			}
			dynamic, err := difference(toUnstructured(before), toUnstructured(after))
			if err != nil || string(dynamic) != test.want {
				t.Errorf("patch of unstructured objects %s (error %v), want %s", dynamic, err, test.want)
			}
		})
	}
}
