package execution

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// staleMember is a member whose cache contains an earlier state than its API server.
type staleMember struct {
	store  client.Client
	cached *unstructured.Unstructured
}

func (s staleMember) Client() client.Client { return s.store }

func (s staleMember) Get(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, bool, error) {
	return s.cached, true, nil
}

func (s staleMember) FindInAnyVersion(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	found, err := s.GetLive(ctx, kind, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (s staleMember) GetLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	return found, s.store.Get(ctx, key, found)
}

func TestDeleteChecksTheCurrentObject(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		kept   bool
	}{
		"an unchanged object": {func(*unstructured.Unstructured) {}, false},
		"an object that changed and still has Karmada's label": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"note": "new"})
		}, false},
		"an object that lost Karmada's label in the meantime": {func(o *unstructured.Unstructured) { o.SetLabels(nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := newDeployment(func(map[string]any) {})
			stored.SetUID("inside")
			stored.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
			karmadaMember := fake.NewClientBuilder().WithObjects(stored).Build()
			target := staleMember{store: karmadaMember}
			key := client.ObjectKeyFromObject(stored)
			var err error
			if target.cached, err = target.GetLive(t.Context(), stored.GroupVersionKind(), key); err != nil {
				t.Fatal(err)
			}
			now := target.cached.DeepCopy()
			tc.change(now)
			if err := karmadaMember.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			c := &controller{}
			if c.metrics, err = newWriteMetrics(prometheus.NewRegistry()); err != nil {
				t.Fatal(err)
			}
			if err := c.deleteObject(t.Context(), target, "m1", stored); err != nil {
				t.Fatal(err)
			}
			_, err = target.GetLive(t.Context(), stored.GroupVersionKind(), key)
			if tc.kept != (err == nil) || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("reading the object after the deletion: %v", err)
			}
		})
	}
}
