package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
)

const (
	// webhookURL has no server. Only a process that answers it itself can call it.
	webhookURL   = "https://karmada-webhook.karmada-system.svc:443"
	adminToken   = "administrator"
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
	pollInterval = 100 * time.Millisecond
)

// TestAPIServerRunsAdmissionAndClusterAPI starts two replicas of karmada-apiserver with one etcd:
// one with the flags of Karmada, and one without them. Neither a webhook server nor a server of the
// Cluster API runs.
func TestAPIServerRunsAdmissionAndClusterAPI(t *testing.T) {
	dir := t.TempDir()
	certs := pki.Dir{Path: filepath.Join(dir, "pki")}
	authority := issueCertificates(t, certs)
	etcd := startEtcd(t, dir)
	karmada := startAPIServer(t, certs, etcd, "--karmada-admission", "--karmada-aggregated-api")
	installKarmada(t, karmada, authority.PEM())
	objects, err := dynamic.NewForConfig(karmada)
	if err != nil {
		t.Fatal(err)
	}
	policies := objects.Resource(policyv1alpha1.GroupVersion.WithResource("propagationpolicies")).Namespace("default")

	t.Run("a policy gets its defaults", func(t *testing.T) {
		policy, err := policies.Create(t.Context(), newPolicy("web"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if policy.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel] == "" {
			t.Errorf("the policy has the labels %v, without a permanent ID", policy.GetLabels())
		}
	})
	t.Run("an invalid policy is denied", func(t *testing.T) {
		invalid := newPolicy("invalid")
		clusters := []any{map[string]any{"spreadByField": "cluster", "minGroups": int64(3), "maxGroups": int64(2)}}
		if err := unstructured.SetNestedSlice(invalid.Object, clusters, "spec", "placement", "spreadConstraints"); err != nil {
			t.Fatal(err)
		}
		if _, err := policies.Create(t.Context(), invalid, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "maxGroups") {
			t.Errorf("the error is %v, which does not name maxGroups", err)
		}
	})
	t.Run("bindings are converted", func(t *testing.T) {
		createBinding(t, objects, "web-deployment")
		old := schema.GroupVersionResource{Group: workv1alpha2.GroupName, Version: "v1alpha1", Resource: "resourcebindings"}
		if _, err := objects.Resource(old).Namespace("default").Get(t.Context(), "web-deployment", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("Clusters are served", func(t *testing.T) {
		clusters := objects.Resource(clusterv1alpha1.GroupVersion.WithResource("clusters"))
		eventually(t, "Clusters are not served", func(ctx context.Context) error {
			_, err := clusters.List(ctx, metav1.ListOptions{})
			return err
		})
		cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"syncMode": "Pull"}}}
		cluster.SetAPIVersion(clusterv1alpha1.GroupVersion.String())
		cluster.SetKind("Cluster")
		cluster.SetName("member1")
		if _, err := clusters.Create(t.Context(), cluster, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a replica without the flags calls the webhook", func(t *testing.T) {
		plain, err := dynamic.NewForConfig(startAPIServer(t, certs, etcd))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the replica does not call the webhook", func(ctx context.Context) error {
			_, err := plain.Resource(policyv1alpha1.GroupVersion.WithResource("propagationpolicies")).Namespace("default").
				Create(ctx, newPolicy("plain"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
				return fmt.Errorf("the error of a request is %w", err)
			}
			return nil
		})
	})
}

// issueCertificates issues the certificates of API servers, and returns the CA.
func issueCertificates(t *testing.T, certs pki.Dir) *pki.Authority {
	t.Helper()
	authority, err := certs.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	frontProxy, err := certs.EnsureAuthority("front-proxy-ca", "front-proxy-ca")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.EnsureAll([]pki.Renewable{
		{Authority: authority, Name: "apiserver", Leaf: pki.Leaf{CommonName: "karmada-apiserver", Hosts: []string{"127.0.0.1", aggregated.ServingName}, Lifetime: pki.DefaultLeafLifetime}},
		{Authority: frontProxy, Name: "front-proxy-client", Leaf: pki.Leaf{CommonName: "front-proxy-client", Lifetime: pki.DefaultLeafLifetime}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := certs.EnsureKey("sa"); err != nil {
		t.Fatal(err)
	}
	tokens := fmt.Sprintf("%s,admin,1,system:masters\n", adminToken)
	if err := os.WriteFile(filepath.Join(certs.Path, "tokens.csv"), []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	return authority
}

// startEtcd runs this binary as etcd and returns its address.
func startEtcd(t *testing.T, dir string) string {
	t.Helper()
	client, peer := "http://"+freeAddress(t), "http://"+freeAddress(t)
	startAs(t, "etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer, "--log-level=error")
	return client
}

// startAPIServer runs this binary as karmada-apiserver, and returns the client configuration of an
// administrator when the server is ready.
func startAPIServer(t *testing.T, certs pki.Dir, etcd string, args ...string) *rest.Config {
	t.Helper()
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	startAs(t, "karmada-apiserver", append([]string{
		"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--secure-port=" + port, "--endpoint-reconciler-type=none",
		"--authorization-mode=RBAC", "--token-auth-file=" + filepath.Join(certs.Path, "tokens.csv"), "--anonymous-auth=false",
		"--service-cluster-ip-range=10.96.0.0/12", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + certs.KeyFile("sa"), "--service-account-signing-key-file=" + certs.KeyFile("sa"),
		"--tls-cert-file=" + certs.CertFile("apiserver"), "--tls-private-key-file=" + certs.KeyFile("apiserver"),
		"--proxy-client-cert-file=" + certs.CertFile("front-proxy-client"), "--proxy-client-key-file=" + certs.KeyFile("front-proxy-client"),
		"--requestheader-client-ca-file=" + certs.CertFile("front-proxy-ca"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount", "--shutdown-delay-duration=0s",
	}, args...)...)
	config := &rest.Config{Host: "https://" + address, BearerToken: adminToken, TLSClientConfig: rest.TLSClientConfig{CAFile: certs.CertFile("ca")}, QPS: -1}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "karmada-apiserver is not ready", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	return config
}

// startAs runs this binary as a program until the test ends. Then the program must stop by itself. The
// log is printed if the test fails.
func startAs(t *testing.T, name string, args ...string) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	process := exec.CommandContext(context.WithoutCancel(t.Context()), executable)
	process.Args = append([]string{name}, args...)
	process.Stdout, process.Stderr = &log, &log
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(stopTimeout, func() { _ = process.Process.Kill() })
		defer kill.Stop()
		_ = process.Wait()
		// etcd ends by the signal.
		if status, ok := process.ProcessState.Sys().(syscall.WaitStatus); !ok || status.ExitStatus() != 0 && status.Signal() != syscall.SIGTERM {
			t.Errorf("%s does not stop when it is asked to: %s", name, process.ProcessState)
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, log.String())
		}
	})
}

// installKarmada creates the objects that an installer creates, for a webhook and a server of the
// Cluster API that do not run.
func installKarmada(t *testing.T, karmada *rest.Config, ca []byte) {
	t.Helper()
	ctx := t.Context()
	namespaces, others, err := install.ControlPlaneObjects(
		rendering.Installation{Release: rendering.DefaultRelease, Namespace: clusterv1alpha1.NamespaceKarmadaSystem},
		rendering.ControlPlane{
			Server: karmada.Host, CA: ca, Webhook: webhookURL,
			APIServers: map[string]rendering.Address{aggregated.ServiceName: {Host: "unreachable.invalid", Port: 443}},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Apply(ctx, karmada, namespaces...); err != nil {
		t.Fatal(err)
	}
	if _, err := install.ApplyCRDs(ctx, karmada, nil, install.Conversion{URL: webhookURL + admission.ConversionPath, CABundle: ca}); err != nil {
		t.Fatal(err)
	}
	if _, err := install.Apply(ctx, karmada, others...); err != nil {
		t.Fatal(err)
	}
}

func newPolicy(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": policyv1alpha1.GroupVersion.String(), "kind": "PropagationPolicy",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"resourceSelectors": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name}},
			"placement":         map[string]any{"clusterAffinity": map[string]any{"clusterNames": []any{"member1"}}},
		},
	}}
}

func createBinding(t *testing.T, objects dynamic.Interface, name string) {
	t.Helper()
	binding := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": workv1alpha2.GroupVersion.String(), "kind": "ResourceBinding",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{"resource": map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web",
		}},
	}}
	bindings := objects.Resource(workv1alpha2.GroupVersion.WithResource("resourcebindings")).Namespace("default")
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// freeAddress returns an address of loopback that no server uses.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// eventually calls check until it returns nil.
func eventually(t *testing.T, failure string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %v", failure, err, last)
	}
}
