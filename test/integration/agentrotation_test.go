package integration

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/controllers/certrotation"
	agentdomain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/testenv"
)

const (
	// firstCertLifetime is the lifetime of the agent's first certificate. It leaves a slow machine
	// enough time to request the next certificate. The signer backdates certificates: 1/20 of the
	// first lifetime has passed when it is signed. The following certificates are signed for at
	// least 10 minutes and backdated by 5 minutes. So with the threshold of earlyRenewalFlag the
	// agent requests the next certificate at once.
	firstCertLifetime = 25 * time.Second
	earlyRenewalFlag  = "--cert-rotation-remaining-time-threshold=0.95"
	// wantRotations is the least number of certificates after the first one.
	wantRotations = 2
)

// storeKubeconfigSecret stores the agent's kubeconfig with inlined certificate and key in its
// Secret.
func (p *pullCluster) storeKubeconfigSecret(t *testing.T) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(p.karmadaKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		if user.ClientCertificateData, err = os.ReadFile(user.ClientCertificate); err != nil {
			t.Fatal(err)
		}
		if user.ClientKeyData, err = os.ReadFile(user.ClientKey); err != nil {
			t.Fatal(err)
		}
		user.ClientCertificate, user.ClientKey = "", ""
	}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.NamespaceKarmadaSystem}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: certrotation.SecretName},
			Data:       map[string][]byte{certrotation.SecretKey: kubeconfig},
		},
	} {
		if err := p.member.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// readKubeconfigSecret returns the certificate and the kubeconfig in the agent's Secret.
func (p *pullCluster) readKubeconfigSecret(ctx context.Context) (*x509.Certificate, []byte, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: certrotation.SecretName}}
	if err := p.member.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return nil, nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[certrotation.SecretKey])
	if err != nil {
		return nil, nil, err
	}
	chain, err := cert.ParseCertsPEM(config.CertData)
	if err != nil {
		return nil, nil, err
	}
	return chain[0], secret.Data[certrotation.SecretKey], nil
}

// deliverChange changes a template and waits until the member has the change.
func (p *pullCluster) deliverChange(t *testing.T, template *corev1.ConfigMap, round string) {
	t.Helper()
	testenv.Update(t, p.env.Karmada, configMap(template.Namespace, template.Name), func(c *corev1.ConfigMap) { c.Data = map[string]string{"round": round} })
	await(t, p.member.Client, configMap(template.Namespace, template.Name), func(c *corev1.ConfigMap) error { return checkEqual("round", round, c.Data["round"]) })
}

// awaitRotations delivers changes until the agent has had more than wantRotations certificates
// and the first one is expired.
func (p *pullCluster) awaitRotations(t *testing.T, first *x509.Certificate, template *corev1.ConfigMap) {
	t.Helper()
	seen, round := []*x509.Certificate{first}, 0
	testenv.Eventually(t, "rotations of the certificate", func(ctx context.Context) error {
		round++
		p.deliverChange(t, template, strconv.Itoa(round))
		now, _, err := p.readKubeconfigSecret(ctx)
		if err != nil {
			return err
		}
		if err := checkEqual("user", agentdomain.User(p.name), now.Subject.CommonName); err != nil {
			return err
		}
		if !bytes.Equal(seen[len(seen)-1].Raw, now.Raw) {
			seen = append(seen, now)
		}
		if len(seen) <= wantRotations || time.Now().Before(seen[0].NotAfter) {
			return fmt.Errorf("%d certificates so far, the first expires at %s", len(seen), seen[0].NotAfter)
		}
		return nil
	})
}

func TestAgentRotatesCertificateWhileDelivering(t *testing.T) {
	env := joining(t)
	p := startPullMember(t, env, "pull-rotates")
	p.writeKubeconfig(t, env.Config.Host, firstCertLifetime)
	p.storeKubeconfigSecret(t)
	p.grantAgentRBAC(t)
	t.Cleanup(func() { removeCluster(t, env, p.name) })
	first, _, err := p.readKubeconfigSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rotationFlags := []string{"--controllers=*,certRotation", "--cert-rotation-checking-interval=1s", earlyRenewalFlag}
	running := p.startAgent(t, rotationFlags...)
	p.awaitReady(t)
	template := configMap(env.Namespace(t), "delivered")
	env.Create(t, policyFor(t, placementOn(p.name), template), template)
	p.awaitRotations(t, first, template)
	select {
	case <-running.done:
		t.Fatalf("the agent ended with %v", running.err)
	default:
	}

	// The agent is started again with the kubeconfig from its Secret.
	if err := running.stop(t); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	_, kubeconfig, err := p.readKubeconfigSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.karmadaKubeconfig, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	p.startAgent(t, rotationFlags...)
	p.deliverChange(t, template, "after a restart")
}
