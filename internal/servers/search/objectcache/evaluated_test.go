package objectcache_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// TestEvaluatedWaitsForEveryRegistry checks that sinks remove nothing while it is unknown what a registry
// selects.
func TestEvaluatedWaitsForEveryRegistry(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme), searchv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	isBroken, reads := atomic.Bool{}, make(chan struct{}, 100)
	isBroken.Store(true)
	karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(registryOf("all", "ConfigMap"), registryOf("nodes", "Node")).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == "nodes" && isBroken.Load() {
				reads <- struct{}{}
				return errors.New("no answer")
			}
			return c.Get(ctx, key, object, options...)
		}}).Build()
	ctx, cancel := context.WithCancel(t.Context())
	cache, err := objectcache.New(objectcache.Options{
		Karmada: karmada, Members: member.NewClusters(ctx, member.Options{Karmada: karmada, Secrets: karmada}),
		Retry: loop.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cache.Run(ctx) }()
	for range 3 {
		<-reads
	}
	select {
	case <-cache.Evaluated():
		t.Error("the evaluation is complete without a registry")
	default:
	}
	isBroken.Store(false)
	select {
	case <-cache.Evaluated():
	case <-time.After(patience):
		t.Error("the evaluation is never complete")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
