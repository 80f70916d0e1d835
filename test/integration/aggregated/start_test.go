package aggregated_test

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
	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/standalone/etcd"
)

// maxWait is the longest time to wait for an expected result.
const maxWait = 2 * time.Minute

// newOptions returns options of a server without a Karmada API server. Every user is "alice"
// and may do everything.
func newOptions(t *testing.T, storage *etcd.Server, secrets ...*corev1.Secret) *aggregated.Options {
	t.Helper()
	o, err := aggregated.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
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
	o.Secrets = func(_ context.Context, namespace, name string) (*corev1.Secret, error) {
		for _, secret := range secrets {
			if secret.Namespace == namespace && secret.Name == name {
				return secret, nil
			}
		}
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return o
}

// startServer runs a server until the test ends and waits until it is ready. The returned
// client configuration uses the network, as for any user.
func startServer(t *testing.T, o *aggregated.Options) *rest.Config {
	t.Helper()
	if errs := o.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
	begin := time.Now()
	server, err := aggregated.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		begin := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		t.Logf("stopped after %s", time.Since(begin).Round(time.Millisecond))
	})
	select {
	case <-server.Ready():
	case err := <-done:
		done <- nil
		t.Fatalf("the server ended before it was ready: %v", err)
	case <-time.After(maxWait):
		t.Fatalf("the server is not ready after %s", maxWait)
	}
	t.Logf("ready after %s", time.Since(begin).Round(time.Millisecond))
	return &rest.Config{
		Host:            "https://" + server.Address().String(),
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		QPS:             -1,
	}
}

func newClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	karmada, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return karmada
}
