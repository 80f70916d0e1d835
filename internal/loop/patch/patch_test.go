package patch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func newWork(manifest string) *workv1alpha1.Work {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
	of.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}}
	return of
}

func TestObject(t *testing.T) {
	tests := map[string]struct {
		after string
		want  []string
	}{
		"nothing differs":      {`{"a":1}`, nil},
		"a difference":         {`{"a":2}`, []string{"patch"}},
		"a null in a manifest": {`{"a":2,"b":{"c":null}}`, []string{"update"}},
		"the text null":        {`{"a":"null"}`, []string{"patch"}},
		"a null in a list":     {`{"a":[null,{"b":null}]}`, []string{"update"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var writes []string
			scheme := runtime.NewScheme()
			if err := workv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(newWork(`{"a":1}`)).WithInterceptorFuncs(interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
					writes = append(writes, "update")
					return c.Update(ctx, object, o...)
				},
				Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
					writes = append(writes, "patch")
					return c.Patch(ctx, object, p, o...)
				},
			}).Build()
			before := &workv1alpha1.Work{}
			if err := store.Get(t.Context(), client.ObjectKeyFromObject(newWork("{}")), before); err != nil {
				t.Fatal(err)
			}
			after := before.DeepCopy()
			after.Spec.Workload.Manifests[0].Raw = []byte(test.after)
			changed, err := Object(t.Context(), store, before, after)
			if err != nil || changed != (test.want != nil) {
				t.Errorf("changed %v, error %v", changed, err)
			}
			if diff := cmp.Diff(test.want, writes); diff != "" {
				t.Error(diff)
			}
			stored := &workv1alpha1.Work{}
			if err := store.Get(t.Context(), client.ObjectKeyFromObject(before), stored); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, string(stored.Spec.Workload.Manifests[0].Raw)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}
