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

// errNoCredentials tells that a Cluster cannot be reached by its own description.
var errNoCredentials = errors.New("the Cluster says not how to reach its API server")

// Throttle limits the requests to one member; the zero value does not.
type Throttle struct {
	QPS   float32
	Burst int
}

// configFor makes the client configuration of a push mode Cluster from its
// description and its Secret.
func configFor(cluster *clusterv1alpha1.Cluster, secret *corev1.Secret, throttle Throttle, shown *credentials) (*rest.Config, error) {
	if cluster.Spec.APIEndpoint == "" {
		return nil, fmt.Errorf("cluster %q: spec.apiEndpoint is empty: %w", cluster.Name, errNoCredentials)
	}
	if tokenIn(secret) == "" {
		return nil, fmt.Errorf("cluster %q: secret %s/%s has no key %q: %w",
			cluster.Name, secret.Namespace, secret.Name, clusterv1alpha1.SecretTokenKey, errNoCredentials)
	}
	shown.take(cluster, secret)
	config := &rest.Config{Host: cluster.Spec.APIEndpoint, QPS: throttle.QPS, Burst: throttle.Burst, UserAgent: FieldManager}
	if throttle.QPS == 0 {
		config.QPS = -1
	}
	reconnect.Promptly(config)
	if cluster.Spec.InsecureSkipTLSVerification {
		config.Insecure = true
	} else {
		config.CAData = secret.Data[clusterv1alpha1.SecretCADataKey]
	}
	if err := useProxy(config, cluster); err != nil {
		return nil, err
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return withinTime(RequestTimeout, authorized(next, shown))
	})
	return config, nil
}

func useProxy(config *rest.Config, cluster *clusterv1alpha1.Cluster) error {
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

// withinTime ends a request that takes longer than the limit, so that a member that
// accepts and never answers holds nobody for longer. A watch has no end of its own.
//
// What a member says after its time is no answer: over HTTP/1.1 the end of the
// connection can make a handler return, which reads like an empty success, or like the
// end of a list of which half was sent.
func withinTime(limit time.Duration, next http.RoundTripper) http.RoundTripper {
	return roundTripper{next: next, trip: func(request *http.Request) (*http.Response, error) {
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
		response.Body = &timely{ReadCloser: response.Body, ctx: ctx, cancel: cancel}
		return response, nil
	}}
}

// timely is the body of an answer that came in time, whose end must do so, too.
type timely struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // it is that of the request
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (t *timely) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) && t.ctx.Err() != nil {
		err = t.ctx.Err()
	}
	return n, err
}

// Close implements io.Closer.
func (t *timely) Close() error {
	defer t.cancel()
	return t.ReadCloser.Close()
}
