// Package sidetest makes sides of a registration that are in memory, for tests.
package sidetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/registration/side"
)

// Refusal makes creating and patching an object of this name fail.
type Refusal string

// Funcs are what the refusal does to a client.
func (r Refusal) Funcs() interceptor.Funcs {
	refused := func(object client.Object) error {
		if object.GetName() == string(r) {
			return errors.New("refused")
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := refused(object); err != nil {
				return err
			}
			object.SetUID(types.UID("uid of " + object.GetName()))
			return api.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := refused(object); err != nil {
				return err
			}
			return api.Patch(ctx, object, patch, options...)
		},
	}
}

// With is a side that holds the objects.
func With(t *testing.T, refused Refusal, objects ...client.Object) *side.Side {
	t.Helper()
	scheme, err := side.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return &side.Side{
		Name: "it", Host: "https://it", Log: t.Logf, Kinds: kindsOfNamespaces,
		API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(refused.Funcs()).
			WithIndex(&corev1.Event{}, "type", typeOfEvent).Build(),
	}
}

// typeOfEvent is a field that API servers select events by.
func typeOfEvent(object client.Object) []string {
	if event, ok := object.(*corev1.Event); ok {
		return []string{event.Type}
	}
	return nil
}

func kindsOfNamespaces() ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"ConfigMap", "Pod", "Secret", "ServiceAccount"} {
		kinds = append(kinds, corev1.SchemeGroupVersion.WithKind(kind))
	}
	return kinds, nil
}

// Content names everything that a side holds, sorted.
func Content(t *testing.T, s *side.Side) []string {
	t.Helper()
	var names []string
	for _, list := range []client.ObjectList{
		&corev1.NamespaceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &coordinationv1.LeaseList{},
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &clusterv1alpha1.ClusterList{}, &workv1alpha1.WorkList{},
	} {
		if err := s.API.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			names = append(names, s.Describe(item.(client.Object)))
		}
	}
	slices.Sort(names)
	return names
}

// Registered is a Cluster as it is stored.
func Registered(name, id string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	return clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode},
	}
}

// Secret is one in namespace ns.
func Secret(name string, owners ...metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}}
}
