package services

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
)

// startProxied starts Services on a machine that reserves ports for root.
func startProxied(t *testing.T, pods *podSet, services ...*corev1.Service) *Services {
	t.Helper()
	client := fake.NewClientset()
	for _, s := range services {
		if err := client.Tracker().Add(s); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Options{Client: client, Pods: pods.list, Events: record.NewFakeRecorder(10), ReservedPorts: true, ProxyDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	s.AwaitNames(ctx)
	return s
}

// dialProxy connects to the proxy, with or without a client certificate.
func dialProxy(ctx context.Context, s *Services, withCertificate bool) (net.Conn, error) {
	proxy, config := s.Proxy(), &tls.Config{RootCAs: x509.NewCertPool()}
	authority, err := os.ReadFile(proxy.CAFile)
	if err != nil {
		return nil, err
	}
	config.RootCAs.AppendCertsFromPEM(authority)
	certificate, err := tls.LoadX509KeyPair(proxy.CertFile, proxy.KeyFile)
	if err != nil {
		return nil, err
	}
	if withCertificate {
		config.Certificates = []tls.Certificate{certificate}
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp4", strings.TrimPrefix(proxy.URL, "https://"))
}

// requestProxy sends a request to the proxy. After a success it returns the first bytes of the server.
func requestProxy(ctx context.Context, s *Services, request string, length int) (string, error) {
	conn, err := dialProxy(ctx, s, true)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return "", err
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		return response.Status, err
	}
	greeting := make([]byte, length)
	_, err = io.ReadFull(reader, greeting)
	return string(greeting), err
}

func connectTo(address string) string {
	return fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
}

func TestProxyConnectsToServices(t *testing.T) {
	pods := &podSet{}
	webhook := service("webhook", corev1.ServicePort{Port: 18447, TargetPort: intstr.FromString("echo")})
	absent := service("absent", corev1.ServicePort{Port: 443, TargetPort: intstr.FromString("echo")})
	s := startProxied(t, pods, webhook, absent, external("alias", "webhook.system.svc.cluster.local"), headless("db"))
	one, db := echoPod(t, "webhook", "pod"), echoPod(t, "db", "row")
	pods.set(one, db)
	s.UpdatePods()
	direct := netip.AddrPortFrom(one.Address, uint16(one.Ports["echo"])).String()
	tests := map[string]struct{ request, want string }{
		"a Service":                   {connectTo("webhook.system.svc:18447"), "pod"},
		"an alias of a Service":       {connectTo("alias.system.svc.cluster.local:18447"), "pod"},
		"a Pod of a headless Service": {connectTo("db.system.svc:" + strconv.Itoa(int(db.Ports["echo"]))), "row"},
		"an address":                  {connectTo(direct), "pod"},
		"a Service without Pods":      {connectTo("absent.system.svc:443"), "502 connecting to absent.system.svc:443: no Pod of the Service is ready"},
		"a port that does not exist":  {connectTo("webhook.system.svc:1"), "502 connecting to webhook.system.svc:1: no Pod of the Service is ready"},
		"an unknown Service":          {connectTo("unknown.system.svc:443"), "502 resolving unknown.system.svc: lookup unknown.system.svc: no such host"},
		"another method":              {"GET / HTTP/1.1\r\nHost: a:1\r\n\r\n", "405 Use CONNECT with a host and a port"},
		"no port":                     {"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", "405 Use CONNECT with a host and a port"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			await(t, func(ctx context.Context) error {
				got, err := requestProxy(ctx, s, test.request, len(test.want))
				if err == nil && got != test.want {
					err = fmt.Errorf("the response is %q, want %q", got, test.want)
				}
				return err
			})
		})
	}
}

func TestProxyRejectsClientsWithoutCertificate(t *testing.T) {
	s := startProxied(t, &podSet{})
	conn, err := dialProxy(t.Context(), s, false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, connectTo("127.0.0.1:1"))
	if response, err := io.ReadAll(conn); err == nil {
		t.Errorf("the proxy answered %q", response)
	}
}

func TestMachineWithoutReservedPortsNeedsNoProxy(t *testing.T) {
	s := start(t)
	if isReserved := hasReservedPorts(); (s.Proxy() != nil) != isReserved {
		t.Errorf("the proxy is %v, although reserved ports: %t", s.Proxy(), isReserved)
	}
}
