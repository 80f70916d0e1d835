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

// lagging is a member whose watch shows what was there before.
type lagging struct {
	store client.Client
	seen  *unstructured.Unstructured
}

func (l lagging) Client() client.Client { return l.store }

func (l lagging) Get(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, bool, error) {
	return l.seen, true, nil
}

func (l lagging) Find(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	found, err := l.GetLive(ctx, kind, key)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (l lagging) GetLive(ctx context.Context, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	return found, l.store.Get(ctx, key, found)
}

func TestAnObjectIsDeletedAsItIsAndNotAsItWasSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		stays  bool
	}{
		"nothing changed": {func(*unstructured.Unstructured) {}, false},
		"it changed and is still ours": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"note": "new"})
		}, false},
		"somebody has withdrawn it from us meanwhile": {func(o *unstructured.Unstructured) { o.SetLabels(nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := object(func(map[string]any) {})
			stored.SetUID("inside")
			stored.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
			karmadaMember := fake.NewClientBuilder().WithObjects(stored).Build()
			target := lagging{store: karmadaMember}
			key := client.ObjectKeyFromObject(stored)
			var err error
			if target.seen, err = target.GetLive(t.Context(), stored.GroupVersionKind(), key); err != nil {
				t.Fatal(err)
			}
			now := target.seen.DeepCopy()
			tc.change(now)
			if err := karmadaMember.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			c := &controller{}
			if c.counters, err = newCounters(prometheus.NewRegistry()); err != nil {
				t.Fatal(err)
			}
			if err := c.remove(t.Context(), target, "m1", stored); err != nil {
				t.Fatal(err)
			}
			_, err = target.GetLive(t.Context(), stored.GroupVersionKind(), key)
			if tc.stays != (err == nil) || err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("reading it afterwards: %v", err)
			}
		})
	}
}
