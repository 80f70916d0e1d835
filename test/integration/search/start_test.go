// Package search_test tests that karmada-search's API server behaves as its clients expect. A
// test runs the server with an etcd, and with an API server of Clusters in place of a control plane.
package search_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/extensionserver"
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/servers/search"
	"karmada.io/karmada/internal/standalone/etcd"
)

// maxWait is the longest time to wait for an expected result.
const maxWait = 20 * time.Second

// configure makes every user "alice", who may do everything.
func configure(t *testing.T, o *extensionserver.Options, storage *etcd.Server) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Server.SecureServing.Listener = listener
	o.Server.SecureServing.ServerCert.CertDirectory = ""
	if err := o.UseEtcd(storage.APIServerFlags()); err != nil {
		t.Fatal(err)
	}
	o.Server.CoreAPI, o.Server.Admission = nil, nil
	o.Server.Features.EnablePriorityAndFairness = false
	o.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	o.Authenticator = authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{User: &user.DefaultInfo{Name: "alice", Groups: []string{"dev", user.AllAuthenticated}}}, true, nil
	})
}

// server is a server of this test.
type server interface {
	Run(ctx context.Context) error
	Ready() <-chan struct{}
	Address() net.Addr
}

// startControlPlane starts an API server of Clusters, and returns its client configuration.
func startControlPlane(t *testing.T, storage *etcd.Server) *rest.Config {
	t.Helper()
	o, err := aggregated.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	configure(t, &o.Options, storage)
	o.Secrets = func(_ context.Context, _, name string) (*corev1.Secret, error) {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	clusters, err := aggregated.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, clusters)
}

// newOptions returns options of a server for a control plane.
func newOptions(t *testing.T, storage *etcd.Server, karmada *rest.Config) *search.Options {
	t.Helper()
	o, err := search.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	configure(t, &o.Options, storage)
	o.Karmada, o.KubeAPIQPS = karmada, -1
	if errs := o.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	return o
}

func startSearch(t *testing.T, o *search.Options) *rest.Config {
	t.Helper()
	s, err := search.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return start(t, s)
}

// start runs a server until the test ends and waits until it is ready. The returned client
// configuration uses the network, as for any user.
func start(t *testing.T, s server) *rest.Config {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		begin := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		t.Logf("stopped after %s", time.Since(begin).Round(time.Millisecond))
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- nil
		t.Fatalf("the server ended before it was ready: %v", err)
	case <-time.After(maxWait):
		t.Fatalf("the server is not ready after %s", maxWait)
	}
	t.Logf("ready after %s", time.Since(begin).Round(time.Millisecond))
	return &rest.Config{Host: "https://" + s.Address().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

func newClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, searchv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return made
}
