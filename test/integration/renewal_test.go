package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
	"karmada.io/karmada/internal/testenv"
)

const (
	// certificateLifetime is the lifetime of the certificates of this test, and wantRenewals is
	// how many renewals of each certificate the test waits for.
	certificateLifetime = 18 * time.Second
	wantRenewals        = 2
	// renewalLimit is the longest time for wantRenewals renewals of all certificates.
	renewalLimit = 3 * time.Minute
)

// shortLivedInstallation is an installation whose certificates are valid for seconds.
type shortLivedInstallation struct {
	control *controlplane.ControlPlane
	member  *standalone.Cluster
	// karmada and inMember are clients that are used longer than any certificate is valid.
	karmada, inMember client.WithWatch
	ports             map[string]int
}

func startShortLivedInstallation(t *testing.T) *shortLivedInstallation {
	t.Helper()
	// Do not stop the installation with the context of the test, which ends before the cleanup.
	ctx := context.WithoutCancel(t.Context())
	s := &shortLivedInstallation{ports: map[string]int{
		controlplane.APIServer: freePort(t), programs.AggregatedAPIServer: freePort(t), programs.Webhook: freePort(t),
	}}
	var err error
	token, dir := uuid.NewString(), t.TempDir()
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",karmada,karmada,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.member, err = testenv.StartCluster(ctx, standalone.Options{
		Name: "east", CommonName: "east", Dir: dir, CertificateLifetime: certificateLifetime, APIServerFlags: []string{"--token-auth-file=" + tokens},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.member.Stop)
	s.control, err = testenv.StartControlPlane(ctx, controlplane.Options{
		Dir: t.TempDir(), Ports: s.ports, CertificateLifetime: certificateLifetime,
		Components: []string{programs.ControllerManager, programs.Scheduler},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.control.Stop)
	s.karmada, s.inMember = openClient(t, s.control.Config()), openClient(t, s.member.Config())
	s.ports["member"] = s.member.Port()
	s.register(t, token)
	await(t, s.karmada, clusterNamed("east"), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady", "")
	})
	return s
}

// register registers the member with the control plane.
func (s *shortLivedInstallation) register(t *testing.T, token string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: "east"},
		Data: map[string][]byte{
			clusterv1alpha1.SecretTokenKey: []byte(token), clusterv1alpha1.SecretCADataKey: s.member.CA().PEM(),
		},
	}
	ref := &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name}
	east := clusterNamed("east")
	east.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: s.member.Server(), SecretRef: ref, ImpersonatorSecretRef: ref,
	}
	s.create(t, secret, east)
}

// create creates objects. It retries, because one request may fail when a client reconnects after
// the renewal of its certificate.
func (s *shortLivedInstallation) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		testenv.Eventually(t, "creating "+object.GetName(), func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(s.karmada.Create(ctx, object))
		})
	}
}

func openClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	created, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// servedSerial returns the serial number of the certificate that a server presents now.
func (s *shortLivedInstallation) servedSerial(ctx context.Context, server string) (string, error) {
	roots := x509.NewCertPool()
	roots.AddCert(s.control.CA().Cert)
	roots.AddCert(s.member.CA().Cert)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS13}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(standalone.Loopback, strconv.Itoa(s.ports[server])))
	if err != nil {
		return "", fmt.Errorf("connecting to %s: %w", server, err)
	}
	defer connection.Close()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

// checkConnections tries each kind of connection that needs a certificate.
func (s *shortLivedInstallation) checkConnections(ctx context.Context, round int) error {
	created := configMap("default", fmt.Sprintf("round-%d", round))
	if err := s.karmada.Create(ctx, created); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("an open client: %w", err)
	}
	return errors.Join(
		wrapError("the aggregated API", s.karmada.Get(ctx, client.ObjectKey{Name: "east"}, &clusterv1alpha1.Cluster{})),
		wrapError("the member, with an open client", s.inMember.Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})),
		wrapError("conversion", s.checkConversion(ctx)),
		wrapError("the proxy to the member", s.checkProxy(ctx)),
		wrapError("a new client", s.checkKubeconfig(ctx)))
}

func wrapError(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// checkConversion lists bindings in a version that is not the stored one.
func (s *shortLivedInstallation) checkConversion(ctx context.Context) error {
	clientset, err := kubernetes.NewForConfig(s.control.Config())
	if err != nil {
		return err
	}
	_, err = clientset.RESTClient().Get().AbsPath("/apis/work.karmada.io/v1alpha1/resourcebindings").DoRaw(ctx)
	return err
}

func (s *shortLivedInstallation) checkProxy(ctx context.Context) error {
	clientset, err := kubernetes.NewForConfig(s.control.Config())
	if err != nil {
		return err
	}
	_, err = clientset.RESTClient().Get().AbsPath("/apis/cluster.karmada.io/v1alpha1/clusters/east/proxy/version").DoRaw(ctx)
	return err
}

// checkKubeconfig reads the kubeconfig and sends a request, as kubectl does.
func (s *shortLivedInstallation) checkKubeconfig(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.control.Kubeconfig())
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = clientset.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	return err
}

func TestCertificatesAreRenewedWhileInUse(t *testing.T) {
	withoutEnvironment(t)
	s := startShortLivedInstallation(t)
	ctx, cancel := context.WithTimeout(t.Context(), renewalLimit)
	defer cancel()
	// Watch with a token, because a client with a token keeps its connection. A client with a
	// client certificate reconnects when the certificate is renewed.
	bearer := &rest.Config{Host: s.control.Server(), BearerToken: s.control.InProcessConfig().BearerToken, TLSClientConfig: rest.TLSClientConfig{CAData: s.control.CA().PEM()}}
	opened, err := openClient(t, bearer).Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Stop()
	rounds := s.awaitRenewals(ctx, t)
	seen := 0
	for event := range opened.ResultChan() {
		if object, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Added && object.Name != "kube-root-ca.crt" {
			seen++
		}
		if seen == rounds {
			break
		}
	}
	if seen != rounds {
		t.Errorf("a watch that was opened before the first renewal saw %d of %d objects", seen, rounds)
	}
	s.checkDelivery(t)
}

// awaitRenewals checks all connections repeatedly until each server has presented more than
// wantRenewals certificates. It returns the number of rounds.
func (s *shortLivedInstallation) awaitRenewals(ctx context.Context, t *testing.T) (rounds int) {
	t.Helper()
	serials := map[string]map[string]bool{}
	for server := range s.ports {
		serials[server] = map[string]bool{}
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		rounds++
		done := false
		retryAfterStall(t, fmt.Sprintf("round %d", rounds), func() error {
			// One request may fail when a connection is replaced.
			if s.checkConnections(ctx, rounds) != nil {
				if err := s.checkConnections(ctx, rounds); err != nil {
					return err
				}
			}
			done = true
			for server := range s.ports {
				serial, err := s.servedSerial(ctx, server)
				if err != nil {
					return err
				}
				serials[server][serial] = true
				done = done && len(serials[server]) > wantRenewals
			}
			return nil
		})
		if done {
			return rounds
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not all certificates were renewed %d times: %v", wantRenewals, serials)
		case <-ticker.C:
		}
	}
}

// checkDelivery checks that objects still reach the member and that it is ready.
func (s *shortLivedInstallation) checkDelivery(t *testing.T) {
	t.Helper()
	template := configMap("default", "after-all")
	s.create(t, template, policyFor(t, placementOn("east"), template))
	await(t, s.inMember, configMap("default", "after-all"), func(delivered *corev1.ConfigMap) error {
		return checkEqual("owner", workv1alpha1.ManagedByKarmadaLabelValue, delivered.Labels[workv1alpha1.ManagedByKarmadaLabel])
	})
	await(t, s.karmada, clusterNamed("east"), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady", "")
	})
}
