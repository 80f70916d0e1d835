package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// directTimeout limits the attempt to connect directly, so that a network that drops packets causes only
	// a short delay.
	directTimeout = 3 * time.Second
	// forwardTimeout limits the start of the port forwarding.
	forwardTimeout = 20 * time.Second
)

// tunnel connects to the control plane's API server. It connects directly if this machine can reach the
// server, and otherwise forwards a Pod's port through the host cluster's API server, so that a machine that
// reaches only the host cluster can install a control plane.
type tunnel struct {
	hostConfig *rest.Config
	host       client.Client
	namespace  string
	app        string
	dialer     net.Dialer

	mu sync.Mutex
	// local is the forwarded address on this machine. It is empty if no port is forwarded.
	local string
	stop  chan struct{}
}

// dial connects to the API server. It has the signature of rest.Config.Dial.
func (t *tunnel) dial(ctx context.Context, network, address string) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.local != "" {
		if conn, err := t.dialer.DialContext(ctx, network, t.local); err == nil {
			return conn, nil
		}
		t.closeForwarding()
	}
	direct, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	conn, directErr := t.dialer.DialContext(direct, network, address)
	if directErr == nil {
		return conn, nil
	}
	if err := t.forward(ctx); err != nil {
		return nil, errors.Join(directErr, fmt.Errorf("connecting through %s: %w", HostName, err))
	}
	return t.dialer.DialContext(ctx, network, t.local)
}

// close stops the port forwarding.
func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeForwarding()
}

func (t *tunnel) closeForwarding() {
	if t.stop != nil {
		close(t.stop)
		t.stop, t.local = nil, ""
	}
}

var errNoReadyPod = errors.New("no Pod of the API server is ready")

// forward starts forwarding to a ready Pod.
func (t *tunnel) forward(ctx context.Context) error {
	pods, err := ListPods(ctx, t.host, t.namespace, map[string]string{"app": t.app})
	if err != nil {
		return err
	}
	for i := range pods {
		if podutils.IsPodReady(&pods[i]) && pods[i].DeletionTimestamp == nil {
			return t.forwardTo(ctx, &pods[i])
		}
	}
	return errNoReadyPod
}

func (t *tunnel) forwardTo(ctx context.Context, pod *corev1.Pod) error {
	clients, err := kubernetes.NewForConfig(t.hostConfig)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(t.hostConfig)
	if err != nil {
		return fmt.Errorf("creating a transport: %w", err)
	}
	url := clients.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	stop, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		[]string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", apiServerPort)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return fmt.Errorf("preparing the port forwarding to Pod %s: %w", pod.Name, err)
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return fmt.Errorf("forwarding a port to Pod %s: %w", pod.Name, err)
	case <-time.After(forwardTimeout):
		close(stop)
		return fmt.Errorf("forwarding a port to Pod %s: it has not started after %s", pod.Name, forwardTimeout)
	case <-ctx.Done():
		close(stop)
		return ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return fmt.Errorf("reading the forwarded port: %w", err)
	}
	t.stop, t.local = stop, fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
	return nil
}
