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
	// firstLife is how long the first certificate of an agent lives, which leaves it
	// time to ask for the next on a machine that is slow. A twentieth of it has passed
	// when it is signed. Those that follow are signed for ten minutes at least, and for
	// five more that have passed by then: so any of them makes an agent ask for the
	// next one at once for which so much is too little.
	firstLife = 25 * time.Second
	hurried   = "--cert-rotation-remaining-time-threshold=0.95"
	// rotations is how often the certificate is seen to be another one.
	rotations = 2
)

// store puts the kubeconfig of the agent into its Secret, with what its files hold.
func (p *pulled) store(t *testing.T) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(p.kubeconfig)
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

// held is the certificate in the Secret of the agent, and the kubeconfig around it.
func (p *pulled) held(ctx context.Context) (*x509.Certificate, []byte, error) {
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

// deliver changes a template and waits until the member has it.
func (p *pulled) deliver(t *testing.T, template *corev1.ConfigMap, what string) {
	t.Helper()
	testenv.Update(t, p.env.Karmada, configMap(template.Namespace, template.Name), func(c *corev1.ConfigMap) { c.Data = map[string]string{"round": what} })
	await(t, p.member.Client, configMap(template.Namespace, template.Name), func(c *corev1.ConfigMap) error { return same("round", what, c.Data["round"]) })
}

// rotated delivers changes until the agent has had several certificates and the first
// one is worth nothing.
func (p *pulled) rotated(t *testing.T, first *x509.Certificate, template *corev1.ConfigMap) {
	t.Helper()
	seen, round := []*x509.Certificate{first}, 0
	testenv.Eventually(t, "rotations of the certificate", func(ctx context.Context) error {
		round++
		p.deliver(t, template, strconv.Itoa(round))
		now, _, err := p.held(ctx)
		if err != nil {
			return err
		}
		if err := same("user", agentdomain.User(p.name), now.Subject.CommonName); err != nil {
			return err
		}
		if !bytes.Equal(seen[len(seen)-1].Raw, now.Raw) {
			seen = append(seen, now)
		}
		if len(seen) <= rotations || time.Now().Before(seen[0].NotAfter) {
			return fmt.Errorf("%d certificates, of which the first ends at %s", len(seen), seen[0].NotAfter)
		}
		return nil
	})
}

func TestAnAgentRenewsItsCertificateAgainAndAgainWhileItDelivers(t *testing.T) {
	env := alone(t)
	p := startPulled(t, env, "pull-rotates")
	p.write(t, env.Config.Host, firstLife)
	p.store(t)
	p.grantRights(t)
	t.Cleanup(func() { removeCluster(t, env, p.name) })
	first, _, err := p.held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rotating := []string{"--controllers=*,certRotation", "--cert-rotation-checking-interval=1s", hurried}
	running := p.run(t, rotating...)
	p.awaitReady(t)
	template := configMap(env.Namespace(t), "delivered")
	env.Create(t, policyFor(t, on(p.name), template), template)
	p.rotated(t, first, template)
	select {
	case <-running.ended:
		t.Fatalf("the agent ended with %v", running.err)
	default:
	}

	// A node starts the agent again with what the Secret holds.
	if err := running.stop(t); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	_, kubeconfig, err := p.held(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.kubeconfig, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	p.run(t, rotating...)
	p.deliver(t, template, "after a start")
}
