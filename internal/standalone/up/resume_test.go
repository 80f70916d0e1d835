package up

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/standalone"
)

// TestResumeInterruptedWithAPIServer uses one API server as both the control plane and the member.
func TestResumeInterruptedWithAPIServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	cluster, err := standalone.Start(ctx, standalone.Options{Name: "both", CommonName: "both", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	api, err := client.New(cluster.Config(), client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	put := func(objects ...client.Object) {
		t.Helper()
		for _, object := range objects {
			if err := api.Create(ctx, object); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := newAuthority(t)
	interrupted := interruptedRegistration{cluster: "member3", token: "abcdef", ca: a.cert}
	put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.NamespaceKarmadaSystem}})
	if existing, err := resumeInterrupted(ctx, interrupted, cluster.Config(), cluster.Config()); existing || err != nil {
		t.Fatalf("without objects the result is %t, %v", existing, err)
	}

	token := tokenSecret(interrupted.token)
	secret, account, deployment := newAgentSecret(t, a.issue(t, agent.User("member3"))), newAgentAccount(), newAgentDeployment("member3")
	role := newAgentRole("member3", "system:bootstrap:abcdef")
	own, foreign := createRequestAs(ctx, t, cluster.Config(), "abcdef"), createRequestAs(ctx, t, cluster.Config(), "123456")
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "karmada-agent"}}
	deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
	deployment.Spec.Template.Spec.Containers[0].Image = "karmada-agent"
	for _, object := range []client.Object{secret, account, deployment} {
		object.SetNamespace(clusterv1alpha1.NamespaceKarmadaSystem)
	}
	put(token, secret, account, deployment, role)
	existing := func() (names []string) {
		t.Helper()
		for _, object := range []client.Object{token, own, foreign, role, secret, account, deployment} {
			switch err := api.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)); {
			case err == nil:
				names = append(names, object.GetName())
			case !apierrors.IsNotFound(err):
				t.Fatal(err)
			}
		}
		return names
	}

	if installed, err := resumeInterrupted(ctx, interrupted, cluster.Config(), cluster.Config()); !installed || err != nil {
		t.Fatalf("with an agent the result is %t, %v", installed, err)
	}
	if diff := cmp.Diff([]string{own.Name, foreign.Name, role.Name, secret.Name, account.Name, deployment.Name}, existing()); diff != "" {
		t.Errorf("objects after resuming with an agent (-want +got):\n%s", diff)
	}
	if err := api.Delete(ctx, deployment); err != nil {
		t.Fatal(err)
	}
	if installed, err := resumeInterrupted(ctx, interrupted, cluster.Config(), cluster.Config()); installed || err != nil {
		t.Fatalf("without an agent the result is %t, %v", installed, err)
	}
	if diff := cmp.Diff([]string{foreign.Name}, existing()); diff != "" {
		t.Errorf("objects after resuming without an agent (-want +got):\n%s", diff)
	}
}

func newAgentAccount() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: pull.AgentAccount, Labels: systemLabel()}}
}

// createRequestAs creates a CertificateSigningRequest as the token's holder.
func createRequestAs(ctx context.Context, t *testing.T, karmada *rest.Config, token string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	holder := rest.CopyConfig(karmada)
	holder.Impersonate = rest.ImpersonationConfig{UserName: "system:bootstrap:" + token, Groups: []string{"system:masters"}}
	api, err := client.New(holder, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "member3-" + token},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	if err := api.Create(ctx, request); err != nil {
		t.Fatal(err)
	}
	return request
}

func TestRetryUnavailable(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	sendRequest := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, closed.URL, http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("joining member1: %w", errors.Join(err, errors.New("cleaning up")))
		}
		return response.Body.Close()
	}
	closed.Close()
	wrong := errors.New("the name is taken")
	tries := 0
	err := retryUnavailable(t.Context(), func() error {
		if tries++; tries == 1 {
			return sendRequest()
		}
		return wrong
	})
	if tries != 2 || !errors.Is(err, wrong) {
		t.Errorf("%d tries ended with %v; want a retry after the first only", tries, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := retryUnavailable(ended, sendRequest); err == nil || !isUnavailable(err) {
		t.Errorf("after the context ended the error is %v, want the last one", err)
	}
}
