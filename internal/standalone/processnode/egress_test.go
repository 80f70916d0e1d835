package processnode

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"karmada.io/karmada/internal/standalone/processnode/services"
)

// TestAPIServerConnectsThroughProxy requires that kube-apiserver accepts the configuration of the
// proxy, and that the program may read all files that the configuration names.
func TestAPIServerConnectsThroughProxy(t *testing.T) {
	dir := t.TempDir()
	n := New(Options{Name: nodeName, Dir: dir})
	n.options.Unconfined = false
	var err error
	n.services, err = services.New(services.Options{
		Client: fake.NewClientset(), Pods: func() []services.Pod { return nil }, Events: record.NewFakeRecorder(1), ProxyDir: filepath.Join(dir, "proxy"), ReservedPorts: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { n.services.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	p := &pod{node: n, dir: dir}
	other := &container{pod: p, dir: dir, spec: &corev1.Container{Image: Image, Command: []string{"etcd"}}}
	if arguments, err := other.egressArguments(); err != nil || len(arguments)+len(other.egressFiles()) > 0 {
		t.Errorf("etcd has the arguments %v and the files %v (%v)", arguments, other.egressFiles(), err)
	}
	for _, program := range []string{"kube-apiserver", "/bin/karmada-apiserver"} {
		c := &container{pod: p, dir: dir, spec: &corev1.Container{Image: Image, Command: []string{program}}}
		arguments, err := c.egressArguments()
		if err != nil || len(arguments) != 1 {
			t.Fatalf("the arguments of %s are %v (%v)", program, arguments, err)
		}
		_, path, _ := strings.Cut(arguments[0], "=")
		config, err := egressselector.ReadEgressSelectorConfiguration(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := egressselector.NewEgressSelector(config); err != nil {
			t.Errorf("%s rejects the proxy: %v", program, err)
		}
		for _, selection := range config.EgressSelections {
			tls := selection.Connection.Transport.TCP.TLSConfig
			for _, file := range []string{path, tls.CABundle, tls.ClientCert, tls.ClientKey} {
				if !slices.Contains(c.egressFiles(), file) {
					t.Errorf("%s may not read %s", program, file)
				}
			}
		}
	}
}
