// Package clusterclienttest provides in-memory clients for tests.
package clusterclienttest

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
	"karmada.io/karmada/internal/registration/clusterclient"
)

// FailingObject is the name of an object that cannot be created or patched.
type FailingObject string

// Funcs returns an interceptor that rejects the object's creation and patches.
func (f FailingObject) Funcs() interceptor.Funcs {
	fail := func(object client.Object) error {
		if object.GetName() == string(f) {
			return errors.New("rejected by the test")
		}
		return nil
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := fail(object); err != nil {
				return err
			}
			object.SetUID(types.UID("uid of " + object.GetName()))
			return api.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := fail(object); err != nil {
				return err
			}
			return api.Patch(ctx, object, patch, options...)
		},
	}
}

// NewClient returns a client for a cluster that contains the objects.
func NewClient(t *testing.T, failing FailingObject, objects ...client.Object) *clusterclient.Client {
	t.Helper()
	scheme, err := clusterclient.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return &clusterclient.Client{
		Name: "it", Host: "https://it", Log: t.Logf, NamespacedKinds: namespacedKinds,
		API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(failing.Funcs()).
			WithIndex(&corev1.Event{}, "type", eventType).Build(),
	}
}

// eventType is the index function for the events' field selector "type".
func eventType(object client.Object) []string {
	if event, ok := object.(*corev1.Event); ok {
		return []string{event.Type}
	}
	return nil
}

func namespacedKinds() ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	for _, kind := range []string{"ConfigMap", "Pod", "Secret", "ServiceAccount"} {
		kinds = append(kinds, corev1.SchemeGroupVersion.WithKind(kind))
	}
	return kinds, nil
}

// ListContent returns the sorted names of all objects in a cluster.
func ListContent(t *testing.T, s *clusterclient.Client) []string {
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

// NewCluster returns a stored Cluster.
func NewCluster(name, id string, mode clusterv1alpha1.ClusterSyncMode) clusterv1alpha1.Cluster {
	return clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: mode},
	}
}

// NewSecret returns a Secret in namespace ns.
func NewSecret(name string, owners ...metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}}
}
