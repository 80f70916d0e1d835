package pull

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

// system is the identity of a member.
func system() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "member"}}
}

func TestARegistrationThatFailsTakesBackWhatItsAgentMade(t *testing.T) {
	before := map[string][]client.Object{
		"a member of nobody":               nil,
		"a member of another one":          {registration.Namespace("ns"), registration.Account("ns", grant.Impersonator), registration.Account("ns", grant.AccountName("west")), grant.Role("west"), grant.RoleBinding("west", "ns")},
		"a member of the same name":        {registration.Namespace("ns"), registration.Account("ns", grant.Impersonator), registration.Account("ns", grant.AccountName("east")), grant.Role("east"), grant.RoleBinding("east", "ns")},
		"a namespace that others use, too": {registration.Namespace("ns"), sidetest.Secret("mine")},
	}
	for name, objects := range before {
		t.Run(name, func(t *testing.T) {
			member := sidetest.With(t, "", append(objects, system())...)
			want := sidetest.Content(t, member)
			r := Register{Name: "east", Namespace: "agents", ClusterNamespace: "ns", Member: &rest.Config{Host: "https://member"}}
			traces, err := r.traces(t.Context(), member)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.installAgent(t.Context(), member, []byte("kubeconfig")); err != nil {
				t.Fatal(err)
			}
			// The agent runs, in a process of its own.
			running := &side.Side{Name: "it", Host: "https://it", Log: t.Logf, API: member.API}
			own, common := registration.Account("ns", grant.AccountName("east")), registration.Account("ns", grant.Impersonator)
			for _, made := range []client.Object{registration.Namespace("ns"), common, own, grant.Role("east"), grant.RoleBinding("east", "ns"), grant.TokenRequest(own), grant.TokenRequest(common)} {
				if _, err := running.Ensure(t.Context(), made, func(client.Object) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.undo(t.Context(), &identity{register: r}, member, traces); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(sidetest.Content(t, member), func(each string) bool {
				// Nobody deletes the token with the account here.
				return strings.HasPrefix(each, "Secret ns/karmada-")
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAgentThatDoesNotRunIsNamedWhileWorksAreLeft(t *testing.T) {
	deployment := func(available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: AgentName}, Status: appsv1.DeploymentStatus{AvailableReplicas: available},
		}
	}
	tests := map[string]struct {
		holds []client.Object
		works int
		want  []string
	}{
		"it does not run": {
			holds: []client.Object{deployment(0)}, works: 2,
			want: []string{"Deployment agents/karmada-agent in it, which deletes their objects: 0 of 1 replicas available"},
		},
		"it runs":                {holds: []client.Object{deployment(1)}, works: 2},
		"no Works are left":      {holds: []client.Object{deployment(0)}},
		"there is no Deployment": {works: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &departure{Unregister: Unregister{Name: "east", Namespace: "agents", AgentName: AgentName}, member: sidetest.With(t, "", test.holds...), memberID: "member"}
			if diff := cmp.Diff(test.want, d.agentHolds(t.Context(), test.works)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// bound are those whom the binding of agents lets do everything.
func bound(t *testing.T, member *side.Side) (namespaces []string) {
	t.Helper()
	have, err := member.Get(t.Context(), Register{}.binding())
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
	member := sidetest.With(t, "", system())
	first, second := Register{Name: "east", Namespace: "first", Member: &rest.Config{Host: "https://member"}}, Register{Name: "ost", Namespace: "second", Member: &rest.Config{Host: "https://member"}}
	leave := func(r Register) {
		t.Helper()
		gone := &departure{Unregister: Unregister{Name: r.Name, Namespace: r.Namespace, AgentName: AgentName, Wait: registration.DefaultWait, Log: t.Logf}, member: member, memberID: "member"}
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
			run := &side.Side{Name: member.Name, Host: member.Host, API: member.API, Log: t.Logf, Kinds: member.Kinds}
			if err := second.installAgent(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
			if err := second.undo(t.Context(), &identity{register: second}, run, nil); err != nil {
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
	if have, err := member.Get(t.Context(), first.role()); have != nil || err != nil {
		t.Errorf("the role is left: %v, %v", have, err)
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
		"there are none":                  {stored: registration.Namespace("agents"), want: "a cluster that was joined has none, and leaves with unjoin"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gone := &departure{
				Unregister: Unregister{Name: "east", Namespace: "agents", AgentName: AgentName, Wait: registration.DefaultWait, Log: t.Logf},
				member:     sidetest.With(t, "", test.stored), memberID: "member",
			}
			err := gone.openKarmada(t.Context())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil || !gone.borrowed || gone.karmada.Host != test.host {
				t.Errorf("opened %+v, %v", gone.karmada, err)
			}
		})
	}
}

func TestAnAgentWithoutAClusterGivesItsNameBack(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east"), Labels: map[string]string{agent.ManagedLabel: "east"}}}
	karmada := sidetest.With(t, "", role)
	gone := &departure{
		Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Log: t.Logf},
		member:     sidetest.With(t, ""), karmada: karmada, borrowed: true,
	}
	if err := gone.leaveKarmada(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := sidetest.Content(t, karmada); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAProtectedClusterIsNotUnregisteredByForceEither(t *testing.T) {
	stored := sidetest.Registered("east", "member", clusterv1alpha1.Pull)
	stored.Labels = map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}
	leaving := &departure{
		Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Force: true, Log: t.Logf},
		member:     sidetest.With(t, ""), memberID: "member", karmada: sidetest.With(t, "", &stored), borrowed: true,
	}
	want := `cluster "east": This resource is protected: to delete it, first remove its label resourcetemplate.karmada.io/deletion-protected=Always`
	if err := leaving.find(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestAnAgentWithoutRightsIsTakenForOneWithoutACluster(t *testing.T) {
	var told string
	stored := sidetest.With(t, "")
	refusing := &side.Side{Name: stored.Name, Host: stored.Host, Log: t.Logf, API: interceptor.NewClient(stored.API, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, of client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}, of.Name, errors.New("its rights are gone"))
		},
	})}
	leaving := &departure{
		Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Log: func(format string, args ...any) { told += fmt.Sprintf(format, args...) + "\n" }},
		member:     sidetest.With(t, ""), memberID: "member", karmada: refusing, borrowed: true,
	}
	if err := leaving.find(t.Context()); err == nil || !strings.Contains(err.Error(), "An agent loses its rights with its Cluster, so that was probably deleted. With --force") {
		t.Errorf("got %v", err)
	}
	leaving.Force = true
	if err := errors.Join(leaving.find(t.Context()), leaving.leaveKarmada(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told, "this may be left in the control plane") || strings.Contains(told, "this is left") {
		t.Errorf("nobody could look, and told was\n%s", told)
	}
}

func TestForceGoesOnWithoutAControlPlaneThatCannotBeAsked(t *testing.T) {
	clusters := schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}
	denied, unknown, away := apierrors.NewForbidden(clusters, "east", nil), apierrors.NewUnauthorized("who is it?"), apierrors.NewInternalError(errors.New("etcd is away"))
	tests := map[string]struct {
		answer          error
		borrowed, force bool
		goesOn          bool
	}{
		"one that does not answer":                          {answer: away, force: true, goesOn: true},
		"one that does not answer the agent":                {answer: away, borrowed: true, force: true, goesOn: true},
		"one that does not let the agent":                   {answer: denied, borrowed: true, force: true, goesOn: true},
		"one that does not know the agent":                  {answer: unknown, borrowed: true, force: true, goesOn: true},
		"not one that does not let a person":                {answer: denied, force: true},
		"not one that does not know a person":               {answer: unknown, force: true},
		"not one that does not answer, unless it is forced": {answer: away},
		"nor one that does not let the agent":               {answer: denied, borrowed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := sidetest.With(t, "")
			stored.API = interceptor.NewClient(stored.API, interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return test.answer
				},
			})
			leaving := &departure{
				Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Force: test.force, Log: t.Logf},
				member:     sidetest.With(t, ""), memberID: "member", karmada: stored, borrowed: test.borrowed,
			}
			err := leaving.find(t.Context())
			if (err == nil) != test.goesOn || (leaving.karmada == nil) != test.goesOn {
				t.Errorf("error %v, goes on with the control plane: %t", err, leaving.karmada != nil)
			}
			if err != nil && !errors.Is(err, test.answer) {
				t.Errorf("error %v does not say why", err)
			}
		})
	}
}

func TestWhatIsNotThisMemberIsNotUnregistered(t *testing.T) {
	tests := map[string]struct {
		id   string
		mode clusterv1alpha1.ClusterSyncMode
		want string
	}{
		"it is":                      {id: "member", mode: clusterv1alpha1.Pull},
		"the Cluster is another one": {id: "other", mode: clusterv1alpha1.Pull, want: `it has ID member, Cluster "east" has other; choose the right context`},
		"the Cluster was joined":     {id: "member", mode: clusterv1alpha1.Push, want: `cluster "east" is in Push mode: use unjoin`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := sidetest.Registered("east", test.id, test.mode)
			leaving := &departure{
				Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Force: true, Log: t.Logf},
				member:     sidetest.With(t, ""), memberID: "member", karmada: sidetest.With(t, "", &stored),
			}
			err := leaving.find(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err == nil && leaving.cluster == nil {
				t.Error("the Cluster was not found")
			}
		})
	}
}

func TestARegistrationThatFailsTakesBackOnlyTheClusterOfItsAgent(t *testing.T) {
	asked := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		id   string
		age  time.Duration
		left []string
	}{
		"one that was made since":   {id: "member"},
		"not one that was there":    {id: "member", age: time.Hour, left: []string{"Cluster east"}},
		"not that of another agent": {id: "other", left: []string{"Cluster east"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := sidetest.Registered("east", test.id, clusterv1alpha1.Pull)
			stored.CreationTimestamp = metav1.NewTime(asked.Add(-test.age))
			failed := &identity{
				register: Register{Name: "east"}, id: "member", karmada: sidetest.With(t, "", &stored),
				request: &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: asked}},
			}
			if err := failed.giveUp(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.left, sidetest.Content(t, failed.karmada)); diff != "" {
				t.Errorf("left behind (-want +got):\n%s", diff)
			}
		})
	}
}
