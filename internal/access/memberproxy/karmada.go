package memberproxy

import (
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"

	"karmada.io/karmada/internal/access/fanout"
)

// karmadaServer serves requests that address all clusters but no resource, such as discovery. It
// forwards these requests to the Karmada API server with this process's credentials and impersonates the
// caller, so the caller gets no additional permissions.
type karmadaServer struct {
	endpoint  *url.URL
	transport http.RoundTripper
	closeIdle func()
}

func newKarmadaServer(config *clientrest.Config) (*karmadaServer, error) {
	if config == nil {
		return nil, nil
	}
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	endpoint, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("parsing the server address: %w", err)
	}
	return &karmadaServer{endpoint: endpoint, transport: client.Transport, closeIdle: client.CloseIdleConnections}, nil
}

func (k *karmadaServer) close() {
	if k != nil {
		k.closeIdle()
	}
}

// forward forwards a request to the Karmada API server.
func (k *karmadaServer) forward(w http.ResponseWriter, req *http.Request, path string, caller user.Info, responder rest.Responder) {
	if k == nil {
		responder.Error(fanout.NewUnavailableError(
			"path %q is not a resource path, and no Karmada API server is configured to serve it", path))
		return
	}
	send := func(req *http.Request) (*http.Response, error) {
		impersonate(req.Header, caller)
		resp, err := k.transport.RoundTrip(req)
		if err != nil {
			return nil, fanout.NewStatusError(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
				"the Karmada API server does not respond: %v; try again", err)
		}
		return resp, nil
	}
	forward(w, req, joinURL(k.endpoint, path, req.URL), roundTripper(send), responder)
}

// roundTripper is a function that sends requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }
