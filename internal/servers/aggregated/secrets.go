package aggregated

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/aggregated/proxy"
)

// secretGetters returns two readers for the credentials of clusters. cached reads Secrets of the
// namespace karmada-cluster from an informer cache, and all other Secrets from the Karmada API
// server. fresh always reads from the Karmada API server.
func (o *Options) secretGetters(config *genericapiserver.RecommendedConfig, karmada kubernetes.Interface) (cached, fresh proxy.SecretGetter, err error) {
	if o.Secrets != nil {
		return o.Secrets, o.Secrets, nil
	}
	factory := informers.NewSharedInformerFactoryWithOptions(karmada, 0,
		informers.WithNamespace(clusterv1alpha1.NamespaceKarmadaCluster),
		informers.WithTransform(dropManagedFields))
	lister := factory.Core().V1().Secrets().Lister()
	err = config.AddPostStartHook("follow-cluster-credentials", func(hook genericapiserver.PostStartHookContext) error {
		factory.StartWithContext(hook.Context)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("adding the hook that watches the credentials of clusters: %w", err)
	}
	fresh = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		return karmada.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	cached = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		if secret, err := lister.Secrets(namespace).Get(name); err == nil {
			return secret, nil
		}
		return fresh(ctx, namespace, name)
	}
	return cached, fresh, nil
}

func dropManagedFields(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
