package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const timeout = time.Minute

// runID is a part of the UIDs of all Services, so that tests on the same machine use different
// addresses.
var runID = rand.Text()

// podSet are a test's Pods, which may change.
type podSet struct {
	mu   sync.Mutex
	pods []Pod
}

func (p *podSet) list() []Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Pod{}, p.pods...)
}

func (p *podSet) set(pods ...Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods = pods
}

// testServices are the Services of a fake cluster.
type testServices struct {
	*Services
	pods   *podSet
	client *fake.Clientset
	events *record.FakeRecorder
}

func start(t *testing.T, objects ...runtime.Object) *testServices {
	t.Helper()
	started := &testServices{pods: &podSet{}, client: fake.NewClientset(objects...), events: record.NewFakeRecorder(10)}
	var err error
	started.Services, err = New(Options{Client: started.client, Pods: started.pods.list, Events: started.events, ProxyDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { started.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	started.AwaitNames(ctx)
	return started
}

func (s *testServices) setPods(pods ...Pod) {
	s.pods.set(pods...)
	s.UpdatePods()
}

// service returns a Service that selects the Pods with the label app of the same name.
func service(name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "system", UID: types.UID(runID + name)},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.7", Selector: map[string]string{"app": name}, Ports: ports},
	}
}

func headless(name string) *corev1.Service {
	s := service(name)
	s.Spec.ClusterIP = corev1.ClusterIPNone
	return s
}

func external(name, target string) *corev1.Service {
	s := service(name)
	s.Spec.Type, s.Spec.ClusterIP, s.Spec.Selector, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "", nil, target
	return s
}

// echoPod is a Pod whose program writes its name and then returns what it reads.
func echoPod(t *testing.T, app, name string) Pod {
	t.Helper()
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	connections.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
				defer stop()
				_, _ = io.WriteString(conn, name)
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { cancel(); _ = server.Close(); connections.Wait() })
	address := netip.MustParseAddrPort(server.Addr().String())
	return Pod{
		Namespace: "system", Name: name, Labels: map[string]string{"app": app}, Address: address.Addr(), IsReady: true,
		Ports: map[string]int32{"echo": int32(address.Port())},
	}
}

// exchange sends a text through a connection, and returns the response.
func exchange(ctx context.Context, address, text string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", address)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	response, err := io.ReadAll(conn)
	return string(response), err
}

// await calls check until it returns nil.
func await(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-ticker.C:
		}
	}
}

func exchanges(address, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := exchange(ctx, address, " hello")
		if err == nil && got != want {
			err = fmt.Errorf("the response is %q, want %q", got, want)
		}
		return err
	}
}

func isRefused(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := exchange(ctx, address, "")
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		return fmt.Errorf("the response is %q (%w), want a refused connection", got, errors.Join(err))
	}
}

func TestServiceForwardsToReadyPod(t *testing.T) {
	web := service("web", corev1.ServicePort{Port: 18443, TargetPort: intstr.FromString("echo")})
	s := start(t, web)
	address := netip.AddrPortFrom(s.serviceAddress(web), 18443).String()
	await(t, isRefused(address))
	one, other := echoPod(t, "web", "one"), echoPod(t, "web", "other")
	other.IsReady = false
	s.setPods(one, other, echoPod(t, "mail", "mail"))
	await(t, exchanges(address, "one hello"))

	one.IsReady, other.IsReady = false, true
	s.setPods(one, other)
	await(t, exchanges(address, "other hello"))

	s.setPods(one)
	await(t, isRefused(address))
	s.setPods(other)
	await(t, exchanges(address, "other hello"))
	if err := s.client.CoreV1().Services("system").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, isRefused(address))
}

func TestServiceUsesAllReadyPods(t *testing.T) {
	web := service("web", corev1.ServicePort{Port: 18444, TargetPort: intstr.FromString("echo")})
	s := start(t, web)
	s.setPods(echoPod(t, "web", "a"), echoPod(t, "web", "b"))
	address := netip.AddrPortFrom(s.serviceAddress(web), 18444).String()
	await(t, exchanges(address, "a hello"))
	await(t, exchanges(address, "b hello"))
}

// TestConnectionOutlivesReadiness requires that a Pod that is not ready for a moment keeps its
// connections, and that the end of the Pod ends them.
func TestConnectionOutlivesReadiness(t *testing.T) {
	web := service("web", corev1.ServicePort{Port: 18445, TargetPort: intstr.FromString("echo")})
	s := start(t, web)
	pod := echoPod(t, "web", "a")
	s.setPods(pod)
	address := netip.AddrPortFrom(s.serviceAddress(web), 18445).String()
	await(t, exchanges(address, "a hello"))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	buffer := make([]byte, 1)
	if _, err := io.ReadFull(conn, buffer); err != nil {
		t.Fatal(err)
	}
	pod.IsReady = false
	s.setPods(pod)
	await(t, isRefused(address))
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, buffer); err != nil || string(buffer) != "x" {
		t.Errorf("the connection returned %q (%v)", buffer, err)
	}
	if err := s.client.CoreV1().Services("system").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(buffer); err == nil {
		t.Error("the connection outlived its Service")
	}
}

func TestTakenNodePortIsReportedAndRetried(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := netip.MustParseAddrPort(taken.Addr().String()).Port()
	web := service("web", corev1.ServicePort{Port: 18446, TargetPort: intstr.FromString("echo"), NodePort: int32(port)})
	s := start(t, web)
	s.setPods(echoPod(t, "web", "a"))
	select {
	case event := <-s.events.Events:
		if want := fmt.Sprintf("nodePort %d does not listen", port); !strings.Contains(event, want) || !strings.Contains(event, "another program") {
			t.Errorf("the event is %q", event)
		}
	case <-time.After(timeout):
		t.Fatal("there is no event")
	}
	s.UpdatePods()
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, exchanges(taken.Addr().String(), "a hello"))
	if len(s.events.Events) > 0 {
		t.Errorf("the error was reported again: %s", <-s.events.Events)
	}
}

func TestListeners(t *testing.T) {
	pod := func(name string, ready bool, ports map[string]int32) Pod {
		address := map[string]string{"a": "127.70.0.1", "b": "127.70.0.2"}[name]
		return Pod{Namespace: "system", Name: name, Labels: map[string]string{"app": "web"}, Address: netip.MustParseAddr(address), IsReady: ready, Ports: ports}
	}
	tests := map[string]struct {
		service *corev1.Service
		change  func(*corev1.Service)
		pods    []Pod
		want    string
	}{
		"a number":                       {service: service("web", corev1.ServicePort{Port: 443, TargetPort: intstr.FromInt32(8443)}), pods: []Pod{pod("a", true, nil)}, want: "127.120.0.1:443>127.70.0.1:8443"},
		"no target port":                 {service: service("web", corev1.ServicePort{Port: 443}), pods: []Pod{pod("a", true, nil)}, want: "127.120.0.1:443>127.70.0.1:443"},
		"a name with different numbers":  {service: service("web", corev1.ServicePort{Port: 80, TargetPort: intstr.FromString("http")}), pods: []Pod{pod("b", true, map[string]int32{"http": 81}), pod("a", true, map[string]int32{"http": 80})}, want: "127.120.0.1:80>127.70.0.1:80,127.70.0.2:81"},
		"a name that no Pod has":         {service: service("web", corev1.ServicePort{Port: 80, TargetPort: intstr.FromString("http")}), pods: []Pod{pod("a", true, nil)}, want: "127.120.0.1:80>"},
		"no ready Pod":                   {service: service("web", corev1.ServicePort{Port: 80}), pods: []Pod{pod("a", false, nil)}, want: "127.120.0.1:80>"},
		"Pods that are published anyway": {service: service("web", corev1.ServicePort{Port: 80}), change: func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true }, pods: []Pod{pod("a", false, nil)}, want: "127.120.0.1:80>127.70.0.1:80"},
		"a node port":                    {service: service("web", corev1.ServicePort{Port: 80, NodePort: 30080}), pods: []Pod{pod("a", true, nil)}, want: "127.120.0.1:80>127.70.0.1:80 127.0.0.1:30080>127.70.0.1:80"},
		"UDP is not forwarded":           {service: service("web", corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP}), pods: []Pod{pod("a", true, nil)}},
		"no Pod of this node":            {service: service("mail", corev1.ServicePort{Port: 80}), pods: []Pod{pod("a", true, nil)}},
		"no selector":                    {service: service("web", corev1.ServicePort{Port: 80}), change: func(s *corev1.Service) { s.Spec.Selector = nil }, pods: []Pod{pod("a", true, nil)}},
		"a Pod of another namespace":     {service: service("web", corev1.ServicePort{Port: 80}), change: func(s *corev1.Service) { s.Namespace = "other" }, pods: []Pod{pod("a", true, nil)}},
		"a headless Service":             {service: headless("web"), change: func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Port: 80}} }, pods: []Pod{pod("a", true, nil)}},
		"an external name":               {service: external("web", "example.org"), pods: []Pod{pod("a", true, nil)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.service)
			}
			var got []string
			for _, l := range listeners(test.service, netip.MustParseAddr("127.120.0.1"), test.pods) {
				var targets []string
				for _, target := range l.targets {
					targets = append(targets, target.String())
				}
				got = append(got, l.address.String()+">"+strings.Join(targets, ","))
			}
			if joined := strings.Join(got, " "); joined != test.want {
				t.Errorf("the listeners are %q, want %q", joined, test.want)
			}
		})
	}
}

func TestListenMessageNamesRemedy(t *testing.T) {
	tests := map[string]struct {
		want    listener
		err     error
		message string
	}{
		"a port of root":        {listener{address: netip.MustParseAddrPort("127.120.0.1:443")}, syscall.EACCES, "ip_unprivileged_port_start=443"},
		"a node port in use":    {listener{address: netip.MustParseAddrPort("127.0.0.1:30080"), isNodePort: true}, syscall.EADDRINUSE, "use another nodePort"},
		"any other error":       {listener{address: netip.MustParseAddrPort("127.120.0.1:80")}, syscall.ENOBUFS, "tries again"},
		"an address in use too": {listener{address: netip.MustParseAddrPort("127.120.0.1:80")}, syscall.EADDRINUSE, "tries again"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := listenMessage(test.want, test.err); !strings.Contains(got, test.message) {
				t.Errorf("the message is %q, want it to contain %q", got, test.message)
			}
		})
	}
}

func TestAddressesOfServices(t *testing.T) {
	first, again := newAllocator(), newAllocator()
	seen := map[netip.Addr]string{}
	var all []*corev1.Service
	for i := range 2000 {
		one := service(fmt.Sprintf("s%d", i))
		all = append(all, one)
		address := first.addressOf(one)
		if address != first.addressOf(one) || !Contains(address) {
			t.Fatalf("the address of %s is %s", one.Name, address)
		}
		if other := seen[address]; other != "" {
			t.Fatalf("%s and %s have the address %s", one.Name, other, address)
		}
		seen[address] = one.Name
		if restarted := again.addressOf(one); restarted != address {
			t.Errorf("the address of %s is %s after a restart, want %s", one.Name, restarted, address)
		}
	}
	first.used[newAllocator().addressOf(service("new"))] = true
	if address := first.addressOf(service("new")); address == newAllocator().addressOf(service("new")) {
		t.Errorf("the address %s is used twice", address)
	}
	first.retain(all[:1])
	if len(first.addresses) != 1 || len(first.used) > 2 {
		t.Errorf("%d addresses of deleted Services remain", len(first.addresses))
	}
	for _, without := range []*corev1.Service{headless("h"), external("e", "example.org")} {
		if address := first.addressOf(without); address.IsValid() {
			t.Errorf("%s has the address %s", without.Name, address)
		}
	}
}
