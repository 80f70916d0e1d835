package e2e

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/pki"
)

// hostedServers are an etcd with three members and an API server, with placeholders for the
// namespace and the node port.
//
//go:embed testdata/hosted.yaml
var hostedServers string

// TestMemberHostsAPIServer runs an etcd with three members and an API server in a simulated member,
// as an installation in a real cluster does, and reaches the API server by its node port. Then it
// deletes Pods, and at last everything.
func TestMemberHostsAPIServer(t *testing.T) {
	t.Parallel()
	host, namespace, nodePort := shared.members[member1], fmt.Sprintf("hosted-%d", rand.IntN(1e6)), 30000+rand.IntN(2700)
	certs := issueHostedCertificates(t, namespace)
	owner := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := host.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Delete(context.WithoutCancel(t.Context()), owner) })
	createIn(t, host, readCertificates(t, certs, namespace))
	manifests := strings.NewReplacer("NAMESPACE", namespace, "NODEPORT", fmt.Sprint(nodePort)).Replace(hostedServers)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(manifests)), len(manifests))
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); err != nil {
			break
		}
		createIn(t, host, object)
	}
	hosted, err := kubernetes.NewForConfig(&rest.Config{
		Host: fmt.Sprintf("https://127.0.0.1:%d", nodePort), Timeout: 5 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{CAFile: certs.CertFile("ca"), CertFile: certs.CertFile("admin"), KeyFile: certs.KeyFile("admin")},
	})
	if err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context) error {
		_, err := hosted.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "n-"}}, metav1.CreateOptions{})
		return err
	}
	eventually(t, "a write through the node port", write)

	for _, app := range []string{"etcd", "apiserver"} {
		pod := hostedPods(t, host, namespace, app)[0]
		if err := host.Delete(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
		eventually(t, "ready Pods of "+app+" after the loss of "+pod.Name, func(ctx context.Context) error {
			return errors.Join(checkReplaced(ctx, host, &pod, app), write(ctx))
		})
	}

	var processes []int
	for _, app := range []string{"etcd", "apiserver"} {
		for _, pod := range hostedPods(t, host, namespace, app) {
			processes = append(processes, processIDOf(t, &pod))
		}
	}
	if err := host.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of all processes and of the node port", func(ctx context.Context) error {
		for _, pid := range processes {
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("process %d exists (%w)", pid, errors.Join(err))
			}
		}
		if err := write(ctx); !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("the node port still listens: %w", errors.Join(err))
		}
		return nil
	})
}

// issueHostedCertificates issues the certificates of the hosted servers. The certificate of etcd has
// no address, so its members are known by their names only.
func issueHostedCertificates(t *testing.T, namespace string) pki.Dir {
	t.Helper()
	certs := pki.Dir{Path: t.TempDir()}
	authority, err := certs.EnsureAuthority("ca", "ca")
	if err != nil {
		t.Fatal(err)
	}
	for name, leaf := range map[string]pki.Leaf{
		"etcd":      {CommonName: "etcd", Hosts: []string{"*.etcd." + namespace + ".svc.cluster.local"}},
		"apiserver": {CommonName: "apiserver", Hosts: []string{"127.0.0.1"}},
		"admin":     {CommonName: "admin", Organizations: []string{"system:masters"}},
	} {
		if _, err := authority.EnsureLeaf(name, leaf); err != nil {
			t.Fatal(err)
		}
	}
	return certs
}

// readCertificates returns the Secret with all certificates and keys.
func readCertificates(t *testing.T, certs pki.Dir, namespace string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: objectMeta(namespace, "pki"), Data: map[string][]byte{}}
	for _, name := range []string{"ca", "etcd", "apiserver", "admin"} {
		for key, path := range map[string]string{name + ".crt": certs.CertFile(name), name + ".key": certs.KeyFile(name)} {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			secret.Data[key] = data
		}
	}
	return secret
}

func createIn(t *testing.T, host client.Client, object client.Object) {
	t.Helper()
	if err := host.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

func hostedPods(t *testing.T, host client.Client, namespace, app string) []corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := host.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// checkReplaced returns an error until a deleted Pod is gone and all Pods of its application are
// ready.
func checkReplaced(ctx context.Context, host client.Client, deleted *corev1.Pod, app string) error {
	pods := &corev1.PodList{}
	if err := host.List(ctx, pods, client.InNamespace(deleted.Namespace), client.MatchingLabels{"app": app}); err != nil {
		return err
	}
	ready := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.UID == deleted.UID {
			return fmt.Errorf("Pod %s still exists", pod.Name)
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	if want := map[string]int{"etcd": 3, "apiserver": 1}[app]; ready != want {
		return fmt.Errorf("%d Pods of %s are ready, want %d", ready, app, want)
	}
	return nil
}
