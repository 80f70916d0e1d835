package estimators

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestWatcherClosesConnections(t *testing.T) {
	if err := clusterv1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	listener := listen(t)
	serve(t, listener, answering(4))
	address := listener.Addr().String()
	pool := newTestPool(t, nil, serviceFor("m1", address), serviceFor("m2", address), serviceFor("m3", address))
	informers := &informertest.FakeInformers{Scheme: scheme.Scheme}
	watcher := &PoolWatcher{Pool: pool.Pool, Clusters: informers, Services: informers}
	if err := watcher.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.limits(t, webDemand(), "m1", "m2", "m3")
	opened := map[string]*connection{}
	for name, e := range pool.clusters {
		opened[name] = e.connection
	}

	clusters, err := informers.FakeInformerFor(t.Context(), &clusterv1alpha1.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	services, err := informers.FakeInformerFor(t.Context(), &corev1.Service{})
	if err != nil {
		t.Fatal(err)
	}
	clusters.Delete(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	services.Delete(serviceFor("m2", address))
	other := serviceFor("m3", address)
	other.Namespace = "default"
	services.Delete(other)
	if !opened["m1"].isClosed() || !opened["m2"].isClosed() || opened["m3"].isClosed() {
		t.Errorf("closed: m1 %t, m2 %t, m3 %t", opened["m1"].isClosed(), opened["m2"].isClosed(), opened["m3"].isClosed())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := watcher.Start(ended); err != nil || !opened["m3"].isClosed() {
		t.Errorf("at the end: error %v, closed %t", err, opened["m3"].isClosed())
	}
	if watcher.NeedLeaderElection() {
		t.Error("the watcher waits for the leader election")
	}
}
