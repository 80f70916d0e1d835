package up

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
)

// TestInterruptedRegistrationIsResumed interrupts a registration, and the rollback of a failed
// registration, after each step.
func TestInterruptedRegistrationIsResumed(t *testing.T) {
	a := newAuthority(t)
	mine := interruptedRegistration{cluster: "member3", token: "abcdef", ca: a.cert}
	request := certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "member3-12345"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Username: "system:bootstrap:abcdef"},
	}
	requested := func(r *interruptedRegistration) { r.requests = []certificatesv1.CertificateSigningRequest{request} }
	granted := func(r *interruptedRegistration) { r.role = newAgentRole("member3", "system:bootstrap:abcdef") }
	secret := func(r *interruptedRegistration) { r.secret = newAgentSecret(t, a.issue(t, agent.User("member3"))) }
	account := func(r *interruptedRegistration) {
		r.account = newAgentAccount()
	}
	deployment := func(r *interruptedRegistration) { r.deployment = newAgentDeployment("member3") }
	const csr, role, kubeconfig, sa, agentItself = "member3-12345", "system:karmada:member3:agent", "karmada-kubeconfig", "karmada-agent-sa", "karmada-agent"

	tests := map[string]struct {
		existing        []func(*interruptedRegistration)
		canContinue     bool
		karmada, member []string
	}{
		"before any object was created":               {},
		"after the request":                           {existing: stepList(requested), karmada: []string{csr}},
		"after the permissions were granted":          {existing: stepList(requested, granted), karmada: []string{csr, role}},
		"after the request was cleaned up":            {existing: stepList(granted), karmada: []string{role}},
		"after the Secret":                            {existing: stepList(requested, granted, secret), karmada: []string{csr, role}, member: []string{kubeconfig}},
		"after the service account":                   {existing: stepList(requested, granted, secret, account), karmada: []string{csr, role}, member: []string{sa, kubeconfig}},
		"after the Deployment":                        {existing: stepList(requested, granted, secret, account, deployment), canContinue: true},
		"after the Deployment, an hour later":         {existing: stepList(granted, secret, account, deployment), canContinue: true},
		"after cleanup of the control plane":          {existing: stepList(requested, secret, account, deployment), karmada: []string{csr}, member: []string{agentItself, sa, kubeconfig}},
		"during cleanup, before the Secret":           {existing: stepList(granted, secret), karmada: []string{role}, member: []string{kubeconfig}},
		"during deletion, after the Deployment":       {existing: stepList(secret, account), member: []string{sa, kubeconfig}},
		"during deletion, after the member's objects": {existing: stepList(requested), karmada: []string{csr}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := mine
			for _, made := range test.existing {
				made(&r)
			}
			expectInterrupted(t, r, test.canContinue, test.karmada, test.member)
		})
	}
}

// TestForeignObjectsAreNotDeleted tests complete registrations. In each case, another owner has one of
// the objects.
func TestForeignObjectsAreNotDeleted(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	whole := func() interruptedRegistration {
		return interruptedRegistration{
			cluster: "member3", token: "abcdef", ca: a.cert,
			role:       newAgentRole("member3", "system:bootstrap:abcdef"),
			secret:     newAgentSecret(t, a.issue(t, agent.User("member3"))),
			account:    newAgentAccount(),
			deployment: newAgentDeployment("member3"),
		}
	}
	tests := map[string]struct {
		foreign         func(*interruptedRegistration)
		karmada, member []string
	}{
		"a request with another token": {
			foreign: func(r *interruptedRegistration) {
				*r = interruptedRegistration{cluster: r.cluster, token: r.token, ca: r.ca, requests: []certificatesv1.CertificateSigningRequest{{
					Spec: certificatesv1.CertificateSigningRequestSpec{Username: "system:bootstrap:123456"},
				}}}
			},
		},
		"permissions that were granted to another token": {
			foreign: func(r *interruptedRegistration) {
				*r = interruptedRegistration{cluster: r.cluster, token: r.token, ca: r.ca, role: newAgentRole("member3", "system:bootstrap:123456")}
			},
		},
		"permissions without a recorded requester": {
			foreign: func(r *interruptedRegistration) {
				*r = interruptedRegistration{cluster: r.cluster, token: r.token, ca: r.ca, role: &rbacv1.ClusterRole{}}
			},
		},
		"a Secret without our label": {
			foreign: func(r *interruptedRegistration) { r.secret.Labels = nil },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a Secret with other content": {
			foreign: func(r *interruptedRegistration) { r.secret.Data = map[string][]byte{"karmada-kubeconfig": []byte("{")} },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a certificate of another control plane of the same name": {
			foreign: func(r *interruptedRegistration) { r.secret = newAgentSecret(t, other.issue(t, agent.User("member3"))) },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a certificate of another user": {
			foreign: func(r *interruptedRegistration) { r.secret = newAgentSecret(t, a.issue(t, agent.User("member1"))) },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a Secret with no certificate": {
			foreign: func(r *interruptedRegistration) { r.secret = newAgentSecret(t, nil) },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"an agent of another Cluster": {
			foreign: func(r *interruptedRegistration) { r.deployment = newAgentDeployment("east") },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a service account without our label": {
			foreign: func(r *interruptedRegistration) { r.account.Labels, r.deployment = nil, nil },
			karmada: []string{"system:karmada:member3:agent"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := whole()
			test.foreign(&r)
			expectInterrupted(t, r, false, test.karmada, test.member)
		})
	}
}

func TestForeignAgentDoesNotBlockStart(t *testing.T) {
	var messages []string
	i, progress := &installation{}, newProgress(func(e event) { messages = append(messages, e.Text) })
	foreign := &pull.PreflightError{Findings: []error{errors.New("Deployment karmada-system/karmada-agent exists")}, Member: "member3"}
	got, err := i.joinedClusters(newMembers(3), []error{nil, nil, fmt.Errorf("registering: %w", foreign)}, progress)
	if diff := cmp.Diff([]string{"member1", "member2"}, got); diff != "" || err != nil {
		t.Errorf("members to wait for (-want +got), %v:\n%s", err, diff)
	}
	if text := strings.Join(messages, "\n"); !strings.Contains(text, "member3 is not registered") || !strings.Contains(text, "unregister it first") {
		t.Errorf("the events have text %q", text)
	}
	broken := errors.New("broken")
	if _, err := i.joinedClusters(newMembers(3), []error{nil, broken, nil}, progress); !errors.Is(err, broken) {
		t.Errorf("joining failed with %v, want %v", err, broken)
	}
}

func TestRegistrationTokenIsStored(t *testing.T) {
	i := &installation{dir: dataDir{t.TempDir()}, state: storedState{Members: newMembers(3)}}
	id, err := i.recordRegistration("member3")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := i.dir.readState()
	if err != nil {
		t.Fatal(err)
	}
	next := &installation{dir: i.dir, state: stored}
	if got := next.registrationToken("member3"); got != id || id == "" {
		t.Errorf("the next start has token %q, want %q", got, id)
	}
	if got := next.registrationToken("member1"); got != "" {
		t.Errorf("member1 has token %q", got)
	}
	if err := next.clearRegistrations(); err != nil {
		t.Fatal(err)
	}
	if stored, err = i.dir.readState(); err != nil || len(stored.RegistrationTokens) > 0 {
		t.Errorf("after its end the registration is still stored: %v (%v)", stored.RegistrationTokens, err)
	}
}

func expectInterrupted(t *testing.T, r interruptedRegistration, goesOn bool, karmada, member []string) {
	t.Helper()
	if got := r.canContinue(); got != goesOn {
		t.Errorf("canContinue is %t, want %t", got, goesOn)
	}
	if goesOn {
		return
	}
	fromKarmada, fromMember := r.objectsToDelete()
	if diff := cmp.Diff(karmada, namesOf(fromKarmada)); diff != "" {
		t.Errorf("deleted from the control plane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(member, namesOf(fromMember)); diff != "" {
		t.Errorf("deleted from the member (-want +got):\n%s", diff)
	}
}

func namesOf(objects []client.Object) (names []string) {
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}

func stepList(made ...func(*interruptedRegistration)) []func(*interruptedRegistration) { return made }

func systemLabel() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

func newAgentRole(cluster, requester string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: agent.RoleName(cluster), Labels: map[string]string{clusterv1alpha1.AgentLabel: cluster},
		Annotations: map[string]string{clusterv1alpha1.AgentRequesterAnnotation: requester},
	}}
}

func newAgentDeployment(cluster string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: pull.AgentName}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: pull.AgentName, Command: []string{"/bin/karmada-agent", "--cluster-name=" + cluster}}}
	return d
}

func newAgentSecret(t *testing.T, certificate []byte) *corev1.Secret {
	t.Helper()
	config, err := clientcmd.Write(clientcmdapi.Config{AuthInfos: map[string]*clientcmdapi.AuthInfo{"member3": {ClientCertificateData: certificate}}})
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: pull.AgentKubeconfig, Labels: systemLabel()},
		Data:       map[string][]byte{pull.AgentKubeconfig: config},
	}
}

// authority issues certificates in tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "karmada"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func (a authority) issue(t *testing.T, user string) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: user}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

func TestMemberKeepsRegisteredName(t *testing.T) {
	i, progress := &installation{}, newProgress(func(event) {})
	by := func(name, id string) error {
		cluster := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{ID: id}}
		return &registration.RegisteredError{Name: "member2", ID: "id 2", Existing: cluster}
	}
	got, err := i.joinedClusters(newMembers(2), []error{nil, fmt.Errorf("joining: %w", by("edge", "id 2"))}, progress)
	if diff := cmp.Diff([]string{"member1", "edge"}, got); diff != "" || err != nil {
		t.Errorf("Clusters to wait for: %v (-want +got):\n%s", err, diff)
	}
	if _, err := i.joinedClusters(newMembers(2), []error{nil, by("member2", "another id")}, progress); err == nil {
		t.Error("another cluster of the same name is accepted as the member")
	}
}
