package processnode

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestWhatAProbeMakesOfAnAnswer(t *testing.T) {
	answers := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	cutShort := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(http.StatusOK)
	}
	hangs := func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"well":                     {answers(http.StatusOK), ""},
		"elsewhere":                {answers(http.StatusFound), ""},
		"not well":                 {answers(http.StatusInternalServerError), "answered 500"},
		"broken off in the middle": {cutShort, "unexpected EOF"},
		"none in time":             {hangs, "context deadline exceeded"},
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
			asked := &prober{container: &corev1.Container{}, address: host}
			err = asked.ask(t.Context(), &corev1.Probe{
				ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(int32(port))}},
				TimeoutSeconds: 1,
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
