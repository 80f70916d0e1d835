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

// secrets returns a reader of the clusters' credentials. It follows the Secrets of
// the one namespace where they are by convention, and asks the Karmada API server
// for what it does not find there.
func (o *Options) secrets(config *genericapiserver.RecommendedConfig, karmada kubernetes.Interface) (proxy.SecretGetter, error) {
	if o.Secrets != nil {
		return o.Secrets, nil
	}
	factory := informers.NewSharedInformerFactoryWithOptions(karmada, 0,
		informers.WithNamespace(clusterv1alpha1.NamespaceKarmadaCluster),
		informers.WithTransform(dropManagedFields))
	cached := factory.Core().V1().Secrets().Lister()
	err := config.AddPostStartHook("follow-cluster-credentials", func(hook genericapiserver.PostStartHookContext) error {
		factory.StartWithContext(hook.Context)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("following the credentials of clusters: %w", err)
	}
	return func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		if secret, err := cached.Secrets(namespace).Get(name); err == nil {
			return secret, nil
		}
		return karmada.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}, nil
}

func dropManagedFields(obj any) (any, error) {
	if object, ok := obj.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
