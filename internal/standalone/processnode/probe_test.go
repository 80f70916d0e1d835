package processnode

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestHTTPProbeResult(t *testing.T) {
	respondWith := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	truncated := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusOK)
	}
	hangs := func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"success":              {respondWith(http.StatusOK), ""},
		"a redirect":           {respondWith(http.StatusFound), ""},
		"a server error":       {respondWith(http.StatusInternalServerError), "responded with 500"},
		"a truncated response": {truncated, "unexpected EOF"},
		"no response in time":  {hangs, "context deadline exceeded"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			t.Cleanup(server.Close)
			host, text, err := net.SplitHostPort(server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			port, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			probed := &prober{container: &corev1.Container{}, address: host}
			err = probed.probeOnce(t.Context(), &corev1.Probe{
				ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(int32(port))}},
				TimeoutSeconds: 1,
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestProbeReachesNoPortOfMachine runs a service of the machine that listens on all addresses, including the
// Pod's address.
func TestProbeReachesNoPortOfMachine(t *testing.T) {
	requests := make(chan struct{}, 2)
	machine, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests <- struct{}{} }), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(machine) }()
	t.Cleanup(func() { _ = server.Close() })
	port := intstr.FromInt32(int32(machine.Addr().(*net.TCPAddr).Port)) // it is a port
	for name, probe := range map[string]corev1.ProbeHandler{
		"httpGet":   {HTTPGet: &corev1.HTTPGetAction{Port: port}},
		"tcpSocket": {TCPSocket: &corev1.TCPSocketAction{Port: port}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &prober{container: &corev1.Container{}, address: "127.66.1.2"}
			err := pod.probeOnce(t.Context(), &corev1.Probe{ProbeHandler: probe, TimeoutSeconds: 1})
			if err == nil || !strings.Contains(err.Error(), "no program of the Pod listens on this port") || len(requests) > 0 {
				t.Errorf("the probe ended with %v, and the service got %d requests", err, len(requests))
			}
		})
	}
}
