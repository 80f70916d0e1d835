package estimators

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

const timeout = 3 * time.Second

func TestAnswers(t *testing.T) {
	tests := map[string]struct {
		count   int32
		err     error
		want    string
		failing float64
	}{
		"a number":                             {count: 7, want: "7 (remote)"},
		"no room":                              {count: 0, want: "0 (remote)"},
		"the estimator cannot tell":            {count: -1, want: "unknown"},
		"a number out of range is an error":    {count: -2, want: "unknown; remote: estimator of cluster m1 returned -2: the smallest valid count is -1", failing: 1},
		"an error of the estimator is shown":   {err: errors.New("cluster name does not match, got: m1, desire: m2"), want: "unknown; remote: cluster name does not match, got: m1, desire: m2", failing: 1},
		"a long error of the estimator is cut": {err: errors.New(strings.Repeat("x", 1000)), want: "unknown; remote: " + strings.Repeat("x", maxErrorBytes-3) + "...", failing: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			listener := listen(t)
			serve(t, listener, &server{answer: func(context.Context, string) (int32, error) { return test.count, test.err }})
			pool := newTestPool(t, nil, serviceFor("m1", listener.Addr().String()))
			for range 2 {
				if diff := cmp.Diff([]string{test.want}, pool.limits(t, webDemand(), "m1")); diff != "" {
					t.Errorf("limits (-want +got):\n%s", diff)
				}
			}
			if got := pool.gauge(t, "m1"); got != test.failing {
				t.Errorf("failing %v, want %v", got, test.failing)
			}
		})
	}
}

func TestRequestsReachTheServer(t *testing.T) {
	listener, objects := listen(t), make(chan []string, 10)
	s := &server{answer: func(ctx context.Context, _ string) (int32, error) {
		received, _ := metadata.FromIncomingContext(ctx)
		objects <- received.Get("object")
		return 3, nil
	}}
	serve(t, listener, s)
	pool := newTestPool(t, nil, serviceFor("m1", listener.Addr().String()))
	sets := webDemand()
	sets.Components = []workv1alpha2.Component{{Name: "a", Replicas: 1}, {Name: "b", Replicas: 2}}
	if diff := cmp.Diff([]string{"5 (remote)"}, pool.limits(t, sets, "m1")); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	if got := pool.UnschedulableReplicas(t.Context(), sets.Workload, time.Minute, []string{"m1"}); got[0].Count != 3 || got[0].Err != nil {
		t.Errorf("unschedulable %+v", got)
	}
	close(objects)
	var got []string
	for object := range objects {
		got = append(got, strings.Join(object, "; "))
	}
	want := []string{"", "kind=Deployment, name=shop/web", "kind=Deployment, name=shop/web"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects of the requests (-want +got):\n%s", diff)
	}
}

func TestAssumedWorkloadsAreSentToTheirCluster(t *testing.T) {
	first, second := listen(t), listen(t)
	serve(t, first, answering(9))
	serve(t, second, answering(9))
	pool := newTestPool(t, nil, serviceFor("m1", first.Addr().String()), serviceFor("m2", second.Addr().String()))
	demand := webDemand()
	demand.Assumed = map[string][]capacity.AssumedWorkload{"m2": {
		{Namespace: "shop", Components: []workv1alpha2.Component{{Name: "a", Replicas: 2}}}, {Namespace: "shop", Components: []workv1alpha2.Component{{Name: "b", Replicas: 3}}},
	}}
	if diff := cmp.Diff([]string{"9 (remote)", "4 (remote)"}, pool.limits(t, demand, "m1", "m2")); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

// Some clusters have no estimator, and some estimators fail. The others respond.
func TestFailingEstimatorsDoNotAffectOthers(t *testing.T) {
	listener, closed := listen(t), unusedAddress(t)
	serve(t, listener, answering(4))
	wrongType, wrongPort := serviceFor("type", closed), serviceFor("port", closed)
	wrongType.Spec.Type, wrongPort.Spec.Ports[0].Port = corev1.ServiceTypeClusterIP, 80
	named := serviceFor("named", closed)
	named.Spec.Ports[0].TargetPort = intstr.FromString("grpc")
	pool := newTestPool(t, nil, serviceFor("m1", listener.Addr().String()), serviceFor("down", closed), wrongType, wrongPort, named)
	pool.resolveOnly(nil)
	want := []string{
		"4 (remote)",
		"unknown; remote: connecting to " + closed + ": connect: connection refused",
		"unknown; remote: Service karmada-system/estimator-type: unsupported service type ClusterIP: set spec.type to ExternalName, because no Pods run behind the Karmada API server",
		"unknown; remote: Service karmada-system/estimator-port: spec.ports has no port 10352: add it, or set --scheduler-estimator-port",
		"unknown; remote: Service karmada-system/estimator-named: targetPort grpc of port 10352 is not supported: set it to a number",
		"unknown",
	}
	for range 2 {
		if diff := cmp.Diff(want, pool.limits(t, webDemand(), "m1", "down", "type", "port", "named", "none")); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
	}
	if pool.gauge(t, "down") != 1 || pool.gauge(t, "m1") != 0 || pool.gauge(t, "none") != -1 {
		t.Errorf("failing: down %v, m1 %v, none %v", pool.gauge(t, "down"), pool.gauge(t, "m1"), pool.gauge(t, "none"))
	}
}

// resolveOnly makes the pool connect to the given addresses of host names. Other host names do not
// exist.
func (p *testPool) resolveOnly(hosts map[string]string) {
	dial := p.dialAddress
	p.dialAddress = func(ctx context.Context, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		if net.ParseIP(host) != nil {
			return dial(ctx, address)
		}
		if found, ok := hosts[host]; ok {
			return dial(ctx, found)
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
}

func TestDefaultAddresses(t *testing.T) {
	listener := listen(t)
	serve(t, listener, answering(4))
	address, closed := listener.Addr().String(), unusedAddress(t)
	const long, short = "estimator-m1.karmada-system.svc.cluster.local", "estimator-m1.karmada-system.svc"
	tests := map[string]struct {
		hosts map[string]string
		want  string
	}{
		"the name with the default domain":      {map[string]string{long: address}, "4 (remote)"},
		"the name without domain":               {map[string]string{short: address}, "4 (remote)"},
		"the second address if the first fails": {map[string]string{long: closed, short: address}, "4 (remote)"},
		"no such names":                         {nil, "unknown"},
		"a failing server":                      {map[string]string{short: closed}, "unknown; remote: connecting to " + short + ":10352: connect: connection refused"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pool := newTestPool(t, nil)
			pool.resolveOnly(test.hosts)
			if diff := cmp.Diff([]string{test.want}, pool.limits(t, webDemand(), "m1")); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPullModeIsSkipped(t *testing.T) {
	listener := listen(t)
	serve(t, listener, answering(4))
	for skip, want := range map[bool]int32{true: capacity.Unknown, false: 4} {
		pool := newTestPool(t, func(o *PoolOptions) { o.SkipPullMode = skip }, serviceFor("m1", listener.Addr().String()))
		pulled := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
		pool.Estimate(t.Context(), webDemand(), []*clusterv1alpha1.Cluster{pulled}, func(_ int, got capacity.Estimate) {
			if got.Count != want || got.Err != nil {
				t.Errorf("skip %t: %+v, want %d", skip, got, want)
			}
		})
	}
}

func TestAddressChanges(t *testing.T) {
	first, second := listen(t), listen(t)
	serve(t, first, answering(1))
	serve(t, second, answering(2))
	service := serviceFor("m1", first.Addr().String())
	pool := newTestPool(t, nil, service)
	steps := []struct {
		name   string
		change func()
		want   string
	}{
		{"the first address", func() {}, "1 (remote)"},
		{"labels do not matter", func() {
			older := service.DeepCopy()
			service.Labels = map[string]string{"a": "b"}
			pool.serviceUpdated(older, service)
		}, "1 (remote)"},
		{"the second address", func() {
			older := service.DeepCopy()
			service.Spec = serviceFor("m1", second.Addr().String()).Spec
			if err := pool.services.Update(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			pool.serviceUpdated(older, service)
		}, "2 (remote)"},
		{"the Service is deleted", func() {
			if err := pool.services.Delete(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			pool.resolveOnly(nil)
			pool.serviceChanged(service)
		}, "unknown"},
	}
	for _, step := range steps {
		step.change()
		if diff := cmp.Diff([]string{step.want}, pool.limits(t, webDemand(), "m1")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// A request whose connection is closed because the address changed is sent to the new address.
func TestRequestDuringAddressChange(t *testing.T) {
	first, second, arrived := listen(t), listen(t), make(chan struct{})
	serve(t, first, &server{answer: func(ctx context.Context, _ string) (int32, error) {
		if received, _ := metadata.FromIncomingContext(ctx); len(received.Get("object")) > 0 {
			close(arrived)
			<-ctx.Done()
		}
		return 1, nil
	}})
	serve(t, second, answering(2))
	service := serviceFor("m1", first.Addr().String())
	pool := newTestPool(t, nil, service)
	var changes sync.WaitGroup
	changes.Go(func() {
		<-arrived
		service.Spec = serviceFor("m1", second.Addr().String()).Spec
		if err := pool.services.Update(t.Context(), service); err != nil {
			t.Error(err)
		}
		pool.serviceChanged(service)
	})
	if diff := cmp.Diff([]string{"2 (remote)"}, pool.limits(t, webDemand(), "m1")); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	changes.Wait()
}

func TestDeletedClusterIsClosed(t *testing.T) {
	listener := listen(t)
	serve(t, listener, answering(4))
	pool := newTestPool(t, nil, serviceFor("m1", listener.Addr().String()))
	pool.limits(t, webDemand(), "m1")
	opened := pool.clusters["m1"].connection
	pool.clusterDeleted(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
	if !opened.isClosed() || len(pool.clusters) != 0 || pool.gauge(t, "m1") != -1 {
		t.Errorf("closed %t, clusters %d, gauge %v", opened.isClosed(), len(pool.clusters), pool.gauge(t, "m1"))
	}
	pool.Close()
	if got := pool.limits(t, webDemand(), "m1"); got[0] != "unknown; remote: the pool of estimators is closed" {
		t.Errorf("after the end: %q", got)
	}
}

// A server that restarts fails at most the requests that it is processing.
func TestServerRestarts(t *testing.T) {
	listener := listen(t)
	address := listener.Addr().String()
	running := serve(t, listener, answering(4))
	pool := newTestPool(t, nil, serviceFor("m1", address))
	now := time.Now()
	pool.now = func() time.Time { return now }
	pool.limits(t, webDemand(), "m1")
	running.Stop()
	if got := pool.limits(t, webDemand(), "m1"); !strings.Contains(got[0], address) {
		t.Errorf("stopped: %q", got)
	}
	again, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, again, answering(5))
	now = now.Add(maxRetryDelay)
	pool.limits(t, webDemand(), "m1") // starts the attempt in the background
	pool.openings.Wait()
	if diff := cmp.Diff([]string{"5 (remote)"}, pool.limits(t, webDemand(), "m1")); diff != "" {
		t.Errorf("restarted (-want +got):\n%s", diff)
	}
}

func TestManyClustersAtOnce(t *testing.T) {
	const count = 200
	services, names := make([]client.Object, count), make([]string, count)
	for i := range count {
		listener := listen(t)
		serve(t, listener, answering(int32(i)))
		names[i] = fmt.Sprintf("m%d", i)
		services[i] = serviceFor(names[i], listener.Addr().String())
	}
	pool := newTestPool(t, nil, services...)
	pool.timeout, pool.openTimeout = time.Minute, time.Minute // the machine may be slow
	var requests sync.WaitGroup
	for range 4 {
		requests.Go(func() {
			got := pool.limits(t, webDemand(), names...)
			for i := range got {
				if want := fmt.Sprintf("%d (remote)", i); got[i] != want {
					t.Errorf("cluster %d: %s", i, got[i])
				}
			}
		})
	}
	requests.Wait()
	if len(pool.clusters) != count {
		t.Errorf("%d connections, want %d", len(pool.clusters), count)
	}
}

func TestRetryDelay(t *testing.T) {
	var got []time.Duration
	for failures := 1; failures <= 7; failures++ {
		got = append(got, retryDelay(failures)/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 30, 30}; !slices.Equal(got, want) {
		t.Errorf("seconds %d, want %d", got, want)
	}
}
