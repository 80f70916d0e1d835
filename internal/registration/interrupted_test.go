package registration

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/pki"
)

// system is the identity of a member.
func system() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "member"}}
}

func TestARegistrationThatFailsTakesBackWhatItsAgentMade(t *testing.T) {
	before := map[string][]client.Object{
		"a member of nobody":               nil,
		"a member of another one":          {namespace("ns"), account("ns", impersonator), account("ns", accountName("west")), role("west"), roleBinding("west", "ns")},
		"a member of the same name":        {namespace("ns"), account("ns", impersonator), account("ns", accountName("east")), role("east"), roleBinding("east", "ns")},
		"a namespace that others use, too": {namespace("ns"), secret("mine")},
	}
	for name, objects := range before {
		t.Run(name, func(t *testing.T) {
			member := sideWith(t, "", append(objects, system())...)
			want := content(t, member)
			r := Register{Name: "east", Namespace: "agents", ClusterNamespace: "ns", Member: &rest.Config{Host: "https://member"}}
			traces, err := r.traces(t.Context(), member)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.installAgent(t.Context(), member, []byte("kubeconfig")); err != nil {
				t.Fatal(err)
			}
			// The agent runs, in a process of its own.
			running := &side{name: "it", host: "https://it", log: t.Logf, api: member.api}
			own, common := account("ns", accountName("east")), account("ns", impersonator)
			for _, made := range []client.Object{namespace("ns"), common, own, role("east"), roleBinding("east", "ns"), tokenRequest(own), tokenRequest(common)} {
				if _, err := running.ensure(t.Context(), made, func(client.Object) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.undo(t.Context(), &identity{register: r}, member, traces); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(content(t, member), func(each string) bool {
				// Nobody deletes the token with the account here.
				return strings.HasPrefix(each, "Secret ns/karmada-")
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

// bound are those whom the binding of agents lets do everything.
func bound(t *testing.T, member *side) (namespaces []string) {
	t.Helper()
	have, err := member.get(t.Context(), Register{}.binding())
	if err != nil {
		t.Fatal(err)
	}
	if binding, ok := have.(*rbacv1.ClusterRoleBinding); ok {
		for _, subject := range binding.Subjects {
			namespaces = append(namespaces, subject.Namespace)
		}
	}
	return namespaces
}

func TestAgentsOfTwoControlPlanesDoNotTakeEachOthersRights(t *testing.T) {
	member := sideWith(t, "", system())
	first, second := Register{Name: "east", Namespace: "first", Member: &rest.Config{Host: "https://member"}}, Register{Name: "ost", Namespace: "second", Member: &rest.Config{Host: "https://member"}}
	leave := func(r Register) {
		t.Helper()
		gone := &departure{Unregister: Unregister{Name: r.Name, Namespace: r.Namespace, AgentName: AgentName, Wait: DefaultWait, Log: t.Logf}, member: member, memberID: "member"}
		if err := gone.cleanUpMember(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want []string
	}{
		{"the first one registers", func() {
			if err := first.installAgent(t.Context(), member, nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"first"}},
		{"the second one fails to", func() {
			member.made = nil
			if err := second.installAgent(t.Context(), member, nil); err != nil {
				t.Fatal(err)
			}
			if err := second.undo(t.Context(), &identity{register: second}, member, nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"first"}},
		{"the second one registers", func() {
			if err := second.installAgent(t.Context(), member, nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"first", "second"}},
		{"the first one leaves", func() { leave(first) }, []string{"second"}},
		{"it leaves again", func() { leave(first) }, []string{"second"}},
		{"the second one leaves", func() { leave(second) }, nil},
	} {
		step.do()
		if diff := cmp.Diff(step.want, bound(t, member)); diff != "" {
			t.Fatalf("%s: bound agents (-want +got):\n%s", step.what, diff)
		}
	}
	if have, err := member.get(t.Context(), first.role()); have != nil || err != nil {
		t.Errorf("the role is left: %v, %v", have, err)
	}
}

func TestUnjoiningAfterARunThatWasKilled(t *testing.T) {
	held := func(owners ...metav1.OwnerReference) []client.Object {
		acting, impersonating := access{}.secrets("east", "ns")
		acting.OwnerReferences, impersonating.OwnerReferences = owners, owners
		return []client.Object{acting, impersonating}
	}
	unlabelled := secret("east")
	of := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "ns", Name: "east"},
	}}
	tests := map[string]struct {
		before []client.Object
		of     *clusterv1alpha1.Cluster
		want   []string
	}{
		"credentials that belong to no Cluster go":         {before: held()},
		"those that the Cluster that is gone referred to":  {before: held(), of: of},
		"those of a Cluster go with it":                    {before: held(metav1.OwnerReference{Kind: "Cluster", Name: "east", UID: "x"}), want: []string{"Secret ns/east", "Secret ns/east-impersonator"}},
		"a Secret of that name that joining did not store": {before: []client.Object{unlabelled}, want: []string{"Secret ns/east"}},
		"nothing is left":                                  {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := sideWith(t, "", test.before...)
			unjoin := Unjoin{Name: "east", ClusterNamespace: "ns", Force: true, Log: t.Logf}
			if found, err := unjoin.find(t.Context(), karmada); found != nil || err != nil {
				t.Fatalf("found %v, %v", found, err)
			}
			if err := unjoin.forget(t.Context(), karmada, test.of); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

// agentSecret is what a registration leaves that was killed before it had an agent.
func agentSecret(t *testing.T, user string) *corev1.Secret {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Ensure("agent", pki.Leaf{CommonName: user, Organizations: []string{agent.Group}}); err != nil {
		t.Fatal(err)
	}
	certificate, err := os.ReadFile(dir.CertFile("agent"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(dir.KeyFile("agent"))
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.Config{
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: "https://karmada", CertificateAuthorityData: ca.PEM()}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: certificate, ClientKeyData: key}},
		Contexts:  map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}}, CurrentContext: "x",
	}
	encoded, err := clientcmd.Write(config)
	if err != nil {
		t.Fatal(err)
	}
	return Register{Namespace: "agents"}.credentials(encoded)
}

func TestUnregisteringWhatWasKilledBeforeItHadAnAgent(t *testing.T) {
	tests := map[string]struct {
		stored client.Object
		host   string
		want   string
	}{
		"with the credentials that it has left": {stored: agentSecret(t, agent.User("east")), host: "https://karmada"},
		"those of another cluster are not touched": {
			stored: agentSecret(t, agent.User("west")), want: `Secret agents/karmada-kubeconfig in https://it is that of the agent of Cluster "west", not of "east"`,
		},
		"those of a person are of no use": {stored: agentSecret(t, "anna"), want: "whose credentials for the control plane could be used"},
		"there are none":                  {stored: namespace("agents"), want: "whose credentials for the control plane could be used"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gone := &departure{
				Unregister: Unregister{Name: "east", Namespace: "agents", AgentName: AgentName, Wait: DefaultWait, Log: t.Logf},
				member:     sideWith(t, "", test.stored), memberID: "member",
			}
			err := gone.openKarmada(t.Context())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil || !gone.borrowed || gone.karmada.host != test.host {
				t.Errorf("opened %+v, %v", gone.karmada, err)
			}
		})
	}
}

func TestAnAgentWithoutAClusterGivesItsNameBack(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east"), Labels: map[string]string{agent.ManagedLabel: "east"}}}
	karmada := sideWith(t, "", role)
	gone := &departure{
		Unregister: Unregister{Name: "east", Wait: DefaultWait, Log: t.Logf},
		member:     sideWith(t, ""), karmada: karmada, borrowed: true,
	}
	if err := gone.leaveKarmada(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := content(t, karmada); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
