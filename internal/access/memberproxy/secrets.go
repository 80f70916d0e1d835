package memberproxy

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// NewSecretGetters returns two readers for the credentials of clusters. cached reads Secrets of the
// namespace karmada-cluster from an informer cache, and all other Secrets from the Karmada API
// server. fresh always reads from the Karmada API server. start starts the informer, which ends
// with its context.
func NewSecretGetters(karmada kubernetes.Interface) (cached, fresh SecretGetter, start func(context.Context)) {
	factory := informers.NewSharedInformerFactoryWithOptions(karmada, 0,
		informers.WithNamespace(clusterv1alpha1.NamespaceKarmadaCluster),
		informers.WithTransform(dropManagedFields))
	lister := factory.Core().V1().Secrets().Lister()
	fresh = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		return karmada.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	cached = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		if secret, err := lister.Secrets(namespace).Get(name); err == nil {
			return secret, nil
		}
		return fresh(ctx, namespace, name)
	}
	return cached, fresh, factory.StartWithContext
}

func dropManagedFields(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
