package proxy

import (
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"
)

// karmadaServer answers requests to all clusters that are about no resource. It is
// asked with the credentials of this server, on behalf of the caller: what the
// caller may not read there, it may not read this way either.
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
		return nil, fmt.Errorf("making a client: %w", err)
	}
	endpoint, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading its address: %w", err)
	}
	return &karmadaServer{endpoint: endpoint, transport: client.Transport, closeIdle: client.CloseIdleConnections}, nil
}

func (k *karmadaServer) close() {
	if k != nil {
		k.closeIdle()
	}
}

// serve passes a request on.
func (k *karmadaServer) serve(w http.ResponseWriter, req *http.Request, path string, caller user.Info, responder rest.Responder) {
	if k == nil {
		responder.Error(failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"path %q is about no resource of the clusters, and there is no Karmada API server to ask for it", path))
		return
	}
	send := func(req *http.Request) (*http.Response, error) {
		impersonate(req.Header, caller)
		resp, err := k.transport.RoundTrip(req)
		if err != nil {
			return nil, failure(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable, "the Karmada API server does not answer: %v; try again", err)
		}
		return resp, nil
	}
	passOn(w, req, below(k.endpoint, path, req.URL), send, responder)
}
