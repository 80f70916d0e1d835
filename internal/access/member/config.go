package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/reconnect"
)

// errNoConnectionData reports that a Cluster does not contain all data that are needed to connect
// to the API server of the member.
var errNoConnectionData = errors.New("the Cluster does not describe how to reach its API server")

// Throttle limits the rate of requests to one member. The zero value sets no limit.
type Throttle struct {
	QPS   float32
	Burst int
}

// newPushConfig returns the client configuration for a Cluster in push mode, from the spec and the
// Secret of the Cluster.
func newPushConfig(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret, throttle Throttle, creds *credentials) (*rest.Config, error) {
	if cluster.Spec.APIEndpoint == "" {
		return nil, fmt.Errorf("cluster %q: spec.apiEndpoint is empty: %w", cluster.Name, errNoConnectionData)
	}
	if tokenFrom(secret) == "" {
		return nil, fmt.Errorf("cluster %q: secret %s/%s has no key %q: %w",
			cluster.Name, secret.Namespace, secret.Name, clusterv1alpha1.SecretTokenKey, errNoConnectionData)
	}
	creds.use(cluster, secret)
	config := &rest.Config{Host: cluster.Spec.APIEndpoint, QPS: throttle.QPS, Burst: throttle.Burst, UserAgent: FieldManager}
	if throttle.QPS == 0 {
		config.QPS = -1
	}
	reconnect.SetPingTimeouts(config)
	if cluster.Spec.InsecureSkipTLSVerification {
		config.Insecure = true
	} else {
		config.CAData = secret.Data[clusterv1alpha1.SecretCADataKey]
	}
	if err := setProxy(config, cluster); err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return withTimeout(RequestTimeout, authenticated(next, creds))
	})
	return config, nil
}

func setProxy(config *rest.Config, cluster *clusterv1alpha1.Cluster) error {
	if cluster.Spec.ProxyURL == "" {
		return nil
	}
	proxy, err := url.Parse(cluster.Spec.ProxyURL)
	if err != nil {
		return fmt.Errorf("cluster %q: spec.proxyURL: %w", cluster.Name, err)
	}
	config.Proxy = http.ProxyURL(proxy)
	if len(cluster.Spec.ProxyHeader) == 0 {
		return nil
	}
	header := http.Header{}
	for name, values := range cluster.Spec.ProxyHeader {
		for value := range strings.SplitSeq(values, ",") {
			header.Add(name, value)
		}
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		if transport, ok := next.(*http.Transport); ok {
			transport = transport.Clone()
			transport.ProxyConnectHeader = header
			return transport
		}
		return next
	})
	return nil
}

// withTimeout ends a request after the limit, so that a member that accepts connections and never
// responds does not block the caller. Watches have no timeout.
//
// A response that ends after the limit is an error. Over HTTP/1.1 the end of the connection can make
// the handler of the server return, and the response then looks like an empty success, or like the
// end of an incomplete list.
func withTimeout(limit time.Duration, next http.RoundTripper) http.RoundTripper {
	return roundTripper{next: next, roundTrip: func(request *http.Request) (*http.Response, error) {
		if query := request.URL.Query(); query.Get("watch") == "true" || query.Get("watch") == "1" {
			return next.RoundTrip(request)
		}
		ctx, cancel := context.WithTimeout(request.Context(), limit)
		response, err := next.RoundTrip(request.WithContext(ctx))
		if err == nil && ctx.Err() != nil {
			_ = response.Body.Close()
			err = ctx.Err()
		}
		if err != nil {
			cancel()
			return nil, err
		}
		response.Body = &timeoutBody{ReadCloser: response.Body, ctx: ctx, cancel: cancel}
		return response, nil
	}}
}

// timeoutBody is the body of a response that began before the timeout. Its end must also arrive
// before the timeout.
type timeoutBody struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // it is that of the request
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (t *timeoutBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && t.ctx.Err() != nil {
		err = t.ctx.Err()
	}
	return n, err
}

// Close implements io.Closer.
func (t *timeoutBody) Close() error {
	defer t.cancel()
	return t.ReadCloser.Close()
}
