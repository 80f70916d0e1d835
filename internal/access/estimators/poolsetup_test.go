package estimators

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// server is an estimator for tests. It returns its response for each request.
type server struct {
	estimatorpb.UnimplementedEstimatorServer
	mu     sync.Mutex
	answer func(ctx context.Context, cluster string) (int32, error)
}

// become makes the server respond like another server.
func (s *server) become(other *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = other.answer
}

func (s *server) respond(ctx context.Context, cluster string) (int32, error) {
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	return answer(ctx, cluster)
}

func answering(count int32) *server {
	return &server{answer: func(context.Context, string) (int32, error) { return count, nil }}
}

// hanging returns a server that does not respond before the request ends.
func hanging() *server {
	return &server{answer: func(ctx context.Context, _ string) (int32, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}}
}

func (s *server) MaxAvailableReplicas(ctx context.Context, request *estimatorpb.MaxAvailableReplicasRequest) (*estimatorpb.MaxAvailableReplicasResponse, error) {
	count, err := s.respond(ctx, request.GetCluster())
	for _, assumed := range request.GetAssumedWorkloads() {
		count -= assumed.GetComponents()[0].GetReplicas()
	}
	return &estimatorpb.MaxAvailableReplicasResponse{MaxReplicas: count}, err
}

func (s *server) MaxAvailableComponentSets(ctx context.Context, request *estimatorpb.MaxAvailableComponentSetsRequest) (*estimatorpb.MaxAvailableComponentSetsResponse, error) {
	count, err := s.respond(ctx, request.GetCluster())
	return &estimatorpb.MaxAvailableComponentSetsResponse{MaxSets: count + int32(len(request.GetComponents()))}, err
}

func (s *server) GetUnschedulableReplicas(ctx context.Context, request *estimatorpb.UnschedulableReplicasRequest) (*estimatorpb.UnschedulableReplicasResponse, error) {
	count, err := s.respond(ctx, request.GetCluster())
	return &estimatorpb.UnschedulableReplicasResponse{UnschedulableReplicas: count}, err
}

// serve starts an estimator on the listener until the test ends.
func serve(t *testing.T, listener net.Listener, s *server, options ...grpc.ServerOption) *grpc.Server {
	t.Helper()
	running := grpc.NewServer(options...)
	estimatorpb.RegisterEstimatorServer(running, s)
	go running.Serve(listener)
	t.Cleanup(running.Stop)
	return running
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// unusedAddress returns an address at which no server listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener := listen(t)
	defer listener.Close()
	return listener.Addr().String()
}

// serviceFor returns the Service of the estimator of a cluster.
func serviceFor(cluster, address string) *corev1.Service {
	host, port, _ := net.SplitHostPort(address)
	target, _ := strconv.Atoi(port)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "estimator-" + cluster},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: host,
			Ports: []corev1.ServicePort{{Port: 10352, TargetPort: intstr.FromInt(target)}},
		},
	}
}

// testPool is a pool that reads Services from a fake client.
type testPool struct {
	*Pool
	services client.Client
	registry *prometheus.Registry
	// timeout is the deadline of an estimate.
	timeout time.Duration
}

func newTestPool(t *testing.T, change func(*PoolOptions), services ...client.Object) *testPool {
	t.Helper()
	tested := &testPool{services: fake.NewClientBuilder().WithObjects(services...).Build(), registry: prometheus.NewRegistry(), timeout: timeout}
	metrics, err := NewPoolMetrics(tested.registry)
	if err != nil {
		t.Fatal(err)
	}
	o := PoolOptions{Services: tested.services, Namespace: "karmada-system", Prefix: "estimator", Port: 10352, Timeout: timeout, Metrics: metrics}
	if change != nil {
		change(&o)
	}
	if tested.Pool, err = NewPool(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tested.Close)
	return tested
}

// limits returns the texts of the limits of the clusters, as the scheduler computes them.
func (p *testPool) limits(t *testing.T, demand capacity.Demand, names ...string) []string {
	t.Helper()
	clusters := make([]*clusterv1alpha1.Cluster, len(names))
	for i, name := range names {
		clusters[i] = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	limits := Ask(t.Context(), []Row{{Name: "remote", Timeout: p.timeout, Estimator: p}}, demand, clusters)
	texts := make([]string, len(limits))
	for i := range limits {
		texts[i] = limits[i].String()
	}
	return texts
}

func webDemand() capacity.Demand {
	return capacity.Demand{Workload: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}}
}

// gauge returns the value of the gauge of failing estimators, or -1 if it is absent.
func (p *testPool) gauge(t *testing.T, cluster string) float64 {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "karmada_estimator_client_failing" && metric.GetLabel()[0].GetValue() == cluster {
				return metric.GetGauge().GetValue()
			}
		}
	}
	return -1
}
