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

// TestARegistrationIsTakenUpWhereItWasCut goes through a registration, and through
// the undoing of one that failed, step by step.
func TestARegistrationIsTakenUpWhereItWasCut(t *testing.T) {
	a := newAuthority(t)
	mine := remains{cluster: "member3", token: "abcdef", ca: a.cert}
	request := certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "member3-12345"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Username: "system:bootstrap:abcdef"},
	}
	requested := func(r *remains) { r.requests = []certificatesv1.CertificateSigningRequest{request} }
	granted := func(r *remains) { r.role = roleFor("member3", "system:bootstrap:abcdef") }
	secret := func(r *remains) { r.secret = secretWith(t, a.issue(t, agent.User("member3"))) }
	account := func(r *remains) {
		r.account = ownAccount()
	}
	deployment := func(r *remains) { r.deployment = agentOf("member3") }
	const csr, role, kubeconfig, sa, agentItself = "member3-12345", "system:karmada:member3:agent", "karmada-kubeconfig", "karmada-agent-sa", "karmada-agent"

	tests := map[string]struct {
		there           []func(*remains)
		goesOn          bool
		karmada, member []string
	}{
		"before anything was made":                        {},
		"after the request":                               {there: steps(requested), karmada: []string{csr}},
		"after the rights were granted":                   {there: steps(requested, granted), karmada: []string{csr, role}},
		"after the request was cleaned up":                {there: steps(granted), karmada: []string{role}},
		"after the Secret":                                {there: steps(requested, granted, secret), karmada: []string{csr, role}, member: []string{kubeconfig}},
		"after the service account":                       {there: steps(requested, granted, secret, account), karmada: []string{csr, role}, member: []string{sa, kubeconfig}},
		"after the Deployment":                            {there: steps(requested, granted, secret, account, deployment), goesOn: true},
		"after the Deployment, an hour later":             {there: steps(granted, secret, account, deployment), goesOn: true},
		"when only the control plane was undone":          {there: steps(requested, secret, account, deployment), karmada: []string{csr}, member: []string{agentItself, sa, kubeconfig}},
		"when the undoing had come to the Secret":         {there: steps(granted, secret), karmada: []string{role}, member: []string{kubeconfig}},
		"when taking back ended after the Deployment":     {there: steps(secret, account), member: []string{sa, kubeconfig}},
		"when taking back ended with the control plane's": {there: steps(requested), karmada: []string{csr}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := mine
			for _, made := range test.there {
				made(&r)
			}
			expectRemains(t, r, test.goesOn, test.karmada, test.member)
		})
	}
}

// TestWhatUsersMadeIsNotTakenBack has a whole registration in each case, of which
// one thing is somebody else's.
func TestWhatUsersMadeIsNotTakenBack(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	whole := func() remains {
		return remains{
			cluster: "member3", token: "abcdef", ca: a.cert,
			role:       roleFor("member3", "system:bootstrap:abcdef"),
			secret:     secretWith(t, a.issue(t, agent.User("member3"))),
			account:    ownAccount(),
			deployment: agentOf("member3"),
		}
	}
	tests := map[string]struct {
		foreign         func(*remains)
		karmada, member []string
	}{
		"a request with another token": {
			foreign: func(r *remains) {
				*r = remains{cluster: r.cluster, token: r.token, ca: r.ca, requests: []certificatesv1.CertificateSigningRequest{{
					Spec: certificatesv1.CertificateSigningRequestSpec{Username: "system:bootstrap:123456"},
				}}}
			},
		},
		"rights that were granted to another token": {
			foreign: func(r *remains) {
				*r = remains{cluster: r.cluster, token: r.token, ca: r.ca, role: roleFor("member3", "system:bootstrap:123456")}
			},
		},
		"rights that nobody recorded": {
			foreign: func(r *remains) {
				*r = remains{cluster: r.cluster, token: r.token, ca: r.ca, role: &rbacv1.ClusterRole{}}
			},
		},
		"a Secret without our label": {
			foreign: func(r *remains) { r.secret.Labels = nil },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a Secret that holds something else": {
			foreign: func(r *remains) { r.secret.Data = map[string][]byte{"karmada-kubeconfig": []byte("{")} },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a certificate of another control plane of the same name": {
			foreign: func(r *remains) { r.secret = secretWith(t, other.issue(t, agent.User("member3"))) },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a certificate of another user": {
			foreign: func(r *remains) { r.secret = secretWith(t, a.issue(t, agent.User("member1"))) },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a Secret with no certificate": {
			foreign: func(r *remains) { r.secret = secretWith(t, nil) },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"an agent of another Cluster": {
			foreign: func(r *remains) { r.deployment = agentOf("east") },
			karmada: []string{"system:karmada:member3:agent"},
		},
		"a service account without our label": {
			foreign: func(r *remains) { r.account.Labels, r.deployment = nil, nil },
			karmada: []string{"system:karmada:member3:agent"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := whole()
			test.foreign(&r)
			expectRemains(t, r, false, test.karmada, test.member)
		})
	}
}

func TestAnAgentOfSomebodyElseHoldsUpNoStart(t *testing.T) {
	var told []string
	i := &installation{state: state{Members: memberNames(3)}, tell: newProgress(func(e event) { told = append(told, e.Text) })}
	foreign := &pull.PreflightError{Findings: []error{errors.New("Deployment karmada-system/karmada-agent exists")}, Member: "member3"}
	got, err := i.joined([]error{nil, nil, fmt.Errorf("registering: %w", foreign)})
	if diff := cmp.Diff([]string{"member1", "member2"}, got); diff != "" || err != nil {
		t.Errorf("members to wait for (-want +got), %v:\n%s", err, diff)
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, "member3 stays without a Cluster") || !strings.Contains(text, "unregister it first") {
		t.Errorf("it tells %q", text)
	}
	broken := errors.New("broken")
	if _, err := i.joined([]error{nil, broken, nil}); !errors.Is(err, broken) {
		t.Errorf("joining failed with %v, want %v", err, broken)
	}
}

func TestTheTokenOfARegistrationIsWrittenDownFirst(t *testing.T) {
	i := &installation{dir: dataDir{t.TempDir()}, state: state{Members: memberNames(3)}}
	id, err := i.beginRegistering("member3")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := i.dir.readState()
	if err != nil {
		t.Fatal(err)
	}
	next := &installation{dir: i.dir, state: stored}
	if got := next.registering("member3"); got != id || id == "" {
		t.Errorf("the next start knows token %q, want %q", got, id)
	}
	if got := next.registering("member1"); got != "" {
		t.Errorf("member1 is being registered with %q", got)
	}
	if err := next.endRegistering(); err != nil {
		t.Fatal(err)
	}
	if stored, err = i.dir.readState(); err != nil || len(stored.Registering) > 0 {
		t.Errorf("after its end the registration is remembered: %v (%v)", stored.Registering, err)
	}
}

func expectRemains(t *testing.T, r remains, goesOn bool, karmada, member []string) {
	t.Helper()
	if got := r.goesOn(); got != goesOn {
		t.Errorf("it goes on: %t, want %t", got, goesOn)
	}
	if goesOn {
		return
	}
	fromKarmada, fromMember := r.discarded()
	if diff := cmp.Diff(karmada, namesOf(fromKarmada)); diff != "" {
		t.Errorf("discarded from the control plane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(member, namesOf(fromMember)); diff != "" {
		t.Errorf("discarded from the member (-want +got):\n%s", diff)
	}
}

func namesOf(objects []client.Object) (names []string) {
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}

func steps(made ...func(*remains)) []func(*remains) { return made }

func systemLabel() map[string]string {
	return map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue}
}

func roleFor(cluster, requester string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: agent.RoleName(cluster), Labels: map[string]string{agent.ManagedLabel: cluster},
		Annotations: map[string]string{agent.RequesterAnnotation: requester},
	}}
}

func agentOf(cluster string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: pull.AgentName}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: pull.AgentName, Command: []string{"/bin/karmada-agent", "--cluster-name=" + cluster}}}
	return d
}

func secretWith(t *testing.T, certificate []byte) *corev1.Secret {
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

func TestAMemberThatHasAnotherNameKeepsIt(t *testing.T) {
	i := &installation{tell: newProgress(func(event) {}), state: state{Members: memberNames(2)}}
	by := func(name, id string) error {
		cluster := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{ID: id}}
		return &registration.RegisteredError{Name: "member2", ID: "id 2", Existing: cluster}
	}
	got, err := i.joined([]error{nil, fmt.Errorf("joining: %w", by("edge", "id 2"))})
	if diff := cmp.Diff([]string{"member1", "edge"}, got); diff != "" || err != nil {
		t.Errorf("Clusters to wait for: %v (-want +got):\n%s", err, diff)
	}
	if _, err := i.joined([]error{nil, by("member2", "another id")}); err == nil {
		t.Error("another cluster of the name is taken for the member")
	}
}
