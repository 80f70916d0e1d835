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
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
	"karmada.io/karmada/internal/registration/enroll"
)

// newSystemNamespace returns the namespace whose UID is a member's identity.
func newSystemNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "member"}}
}

func TestFailedRegisterDeletesAgentObjects(t *testing.T) {
	before := map[string][]client.Object{
		"an unregistered member":            nil,
		"a member of another control plane": {registration.NewNamespace("ns"), registration.NewServiceAccount("ns", enroll.ImpersonatorAccount), registration.NewServiceAccount("ns", enroll.AccountName("west")), enroll.NewClusterRole("west"), enroll.NewClusterRoleBinding("west", "ns")},
		"a member of the same name":         {registration.NewNamespace("ns"), registration.NewServiceAccount("ns", enroll.ImpersonatorAccount), registration.NewServiceAccount("ns", enroll.AccountName("east")), enroll.NewClusterRole("east"), enroll.NewClusterRoleBinding("east", "ns")},
		"a namespace with other objects":    {registration.NewNamespace("ns"), clusterclienttest.NewSecret("mine")},
	}
	for name, objects := range before {
		t.Run(name, func(t *testing.T) {
			member := clusterclienttest.NewClient(t, "", append(objects, newSystemNamespace())...)
			want := clusterclienttest.ListContent(t, member)
			r := Register{Name: "east", Namespace: "agents", ClusterNamespace: "ns", Member: &rest.Config{Host: "https://member"}}
			agentObjects, err := r.missingAgentObjects(t.Context(), member)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.installAgent(t.Context(), member, []byte("kubeconfig")); err != nil {
				t.Fatal(err)
			}
			// The agent runs in another process, so it has its own client.
			agentClient := &clusterclient.Client{Name: "it", Host: "https://it", Log: t.Logf, API: member.API}
			account, impersonator := registration.NewServiceAccount("ns", enroll.AccountName("east")), registration.NewServiceAccount("ns", enroll.ImpersonatorAccount)
			for _, object := range []client.Object{registration.NewNamespace("ns"), impersonator, account, enroll.NewClusterRole("east"), enroll.NewClusterRoleBinding("east", "ns"), enroll.NewTokenSecret(account), enroll.NewTokenSecret(impersonator)} {
				if _, err := agentClient.Ensure(t.Context(), object, func(client.Object) error { return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.rollBack(t.Context(), &agentIdentity{register: r}, member, agentObjects); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(clusterclienttest.ListContent(t, member), func(each string) bool {
				// The fake API server does not delete a deleted account's tokens.
				return strings.HasPrefix(each, "Secret ns/karmada-")
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAgentBlockers(t *testing.T) {
	deployment := func(available int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: AgentName}, Status: appsv1.DeploymentStatus{AvailableReplicas: available},
		}
	}
	tests := map[string]struct {
		objects []client.Object
		works   int
		want    []string
	}{
		"the agent is not available": {
			objects: []client.Object{deployment(0)}, works: 2,
			want: []string{"Deployment agents/karmada-agent in it, which deletes their objects: 0 of 1 replicas available"},
		},
		"the agent is available": {objects: []client.Object{deployment(1)}, works: 2},
		"no Works are left":      {objects: []client.Object{deployment(0)}},
		"there is no Deployment": {works: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &unregistration{Unregister: Unregister{Name: "east", Namespace: "agents", AgentName: AgentName}, member: clusterclienttest.NewClient(t, "", test.objects...), memberID: "member"}
			if diff := cmp.Diff(test.want, d.agentBlockers(t.Context(), test.works)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// boundNamespaces returns the namespaces of the subjects in the agents' ClusterRoleBinding.
func boundNamespaces(t *testing.T, member *clusterclient.Client) (namespaces []string) {
	t.Helper()
	have, err := member.Get(t.Context(), Register{}.agentBinding())
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

func TestAgentsOfTwoControlPlanesShareBinding(t *testing.T) {
	member := clusterclienttest.NewClient(t, "", newSystemNamespace())
	first, second := Register{Name: "east", Namespace: "first", Member: &rest.Config{Host: "https://member"}}, Register{Name: "ost", Namespace: "second", Member: &rest.Config{Host: "https://member"}}
	unregister := func(r Register) {
		t.Helper()
		run := &unregistration{Unregister: Unregister{Name: r.Name, Namespace: r.Namespace, AgentName: AgentName, Wait: registration.DefaultWait, Log: t.Logf}, member: member, memberID: "member"}
		if err := run.cleanUpMember(t.Context()); err != nil {
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
		{"the second one fails to register", func() {
			run := &clusterclient.Client{Name: member.Name, Host: member.Host, API: member.API, Log: t.Logf, NamespacedKinds: member.NamespacedKinds}
			if err := second.installAgent(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
			if err := second.rollBack(t.Context(), &agentIdentity{register: second}, run, nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"first"}},
		{"the second one registers", func() {
			if err := second.installAgent(t.Context(), member, nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"first", "second"}},
		{"the first one unregisters", func() { unregister(first) }, []string{"second"}},
		{"the first one unregisters again", func() { unregister(first) }, []string{"second"}},
		{"the second one unregisters", func() { unregister(second) }, nil},
	} {
		step.do()
		if diff := cmp.Diff(step.want, boundNamespaces(t, member)); diff != "" {
			t.Fatalf("%s: bound agents (-want +got):\n%s", step.what, diff)
		}
	}
	if have, err := member.Get(t.Context(), first.agentRole()); have != nil || err != nil {
		t.Errorf("the role remains: %v, %v", have, err)
	}
}

// newAgentSecret returns the Secret that remains if a registration is interrupted before it installs
// the agent.
func newAgentSecret(t *testing.T, user string) *corev1.Secret {
	t.Helper()
	dir := pki.Dir{Path: t.TempDir()}
	ca, err := dir.EnsureAuthority("ca", "karmada")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ca.EnsureLeaf("agent", pki.Leaf{CommonName: user, Organizations: []string{agent.Group}}); err != nil {
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
	return Register{Namespace: "agents"}.kubeconfigSecret(encoded)
}

func TestUnregisterAfterInterruptedRegister(t *testing.T) {
	tests := map[string]struct {
		stored client.Object
		host   string
		want   string
	}{
		"the Secret of the cluster": {stored: newAgentSecret(t, agent.User("east")), host: "https://karmada"},
		"the Secret of another cluster": {
			stored: newAgentSecret(t, agent.User("west")), want: `Secret agents/karmada-kubeconfig in https://it belongs to the agent of Cluster "west", not of "east"`,
		},
		"the Secret of another user": {stored: newAgentSecret(t, "anna"), want: "whose credentials for the control plane could be used"},
		"no Secret":                  {stored: registration.NewNamespace("agents"), want: "a cluster in push mode has no agent: use unjoin"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			run := &unregistration{
				Unregister: Unregister{Name: "east", Namespace: "agents", AgentName: AgentName, Wait: registration.DefaultWait, Log: t.Logf},
				member:     clusterclienttest.NewClient(t, "", test.stored), memberID: "member",
			}
			err := run.openKarmada(t.Context())
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil || !run.usesAgentCredentials || run.karmada.Host != test.host {
				t.Errorf("opened %+v, %v", run.karmada, err)
			}
		})
	}
}

func TestUnregisterWithoutClusterDeletesManagedRole(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east"), Labels: map[string]string{clusterv1alpha1.AgentLabel: "east"}}}
	karmada := clusterclienttest.NewClient(t, "", role)
	run := &unregistration{
		Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Log: t.Logf},
		member:     clusterclienttest.NewClient(t, ""), karmada: karmada, usesAgentCredentials: true,
	}
	if err := run.removeFromKarmada(t.Context()); err != nil {
		t.Fatal(err)
	}
	if remaining := clusterclienttest.ListContent(t, karmada); len(remaining) > 0 {
		t.Errorf("remaining objects: %v", remaining)
	}
}

func TestForcedUnregisterOfProtectedCluster(t *testing.T) {
	stored := clusterclienttest.NewCluster("east", "member", clusterv1alpha1.Pull)
	stored.Labels = map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}
	run := &unregistration{
		Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Force: true, Log: t.Logf},
		member:     clusterclienttest.NewClient(t, ""), memberID: "member", karmada: clusterclienttest.NewClient(t, "", &stored), usesAgentCredentials: true,
	}
	want := `cluster "east": This resource is protected: to delete it, first remove its label resourcetemplate.karmada.io/deletion-protected=Always`
	if err := run.findCluster(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestUnregisterWithRevokedAgentPermissions(t *testing.T) {
	var logged string
	stored := clusterclienttest.NewClient(t, "")
	forbidden := &clusterclient.Client{Name: stored.Name, Host: stored.Host, Log: t.Logf, API: interceptor.NewClient(stored.API, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, of client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}, of.Name, errors.New("its rights are gone"))
		},
	})}
	run := &unregistration{
		Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Log: func(format string, args ...any) { logged += fmt.Sprintf(format, args...) + "\n" }},
		member:     clusterclienttest.NewClient(t, ""), memberID: "member", karmada: forbidden, usesAgentCredentials: true,
	}
	if err := run.findCluster(t.Context()); err == nil || !strings.Contains(err.Error(), "An agent loses its permissions with its Cluster, so the Cluster was probably deleted. Use --force") {
		t.Errorf("got %v", err)
	}
	run.Force = true
	if err := errors.Join(run.findCluster(t.Context()), run.removeFromKarmada(t.Context())); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(logged, "these objects may remain in the control plane") || strings.Contains(logged, "these objects remain") {
		t.Errorf("the Cluster could not be read, but the log is\n%s", logged)
	}
}

func TestForcedUnregisterWithoutControlPlane(t *testing.T) {
	clusters := schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusters"}
	forbidden, unauthorized, unavailable := apierrors.NewForbidden(clusters, "east", nil), apierrors.NewUnauthorized("who is it?"), apierrors.NewInternalError(errors.New("etcd is away"))
	tests := map[string]struct {
		response                    error
		usesAgentCredentials, force bool
		continues                   bool
	}{
		"unavailable":                           {response: unavailable, force: true, continues: true},
		"unavailable for the agent":             {response: unavailable, usesAgentCredentials: true, force: true, continues: true},
		"Forbidden for the agent":               {response: forbidden, usesAgentCredentials: true, force: true, continues: true},
		"Unauthorized for the agent":            {response: unauthorized, usesAgentCredentials: true, force: true, continues: true},
		"Forbidden for the user":                {response: forbidden, force: true},
		"Unauthorized for the user":             {response: unauthorized, force: true},
		"unavailable without force":             {response: unavailable},
		"Forbidden for the agent without force": {response: forbidden, usesAgentCredentials: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := clusterclienttest.NewClient(t, "")
			stored.API = interceptor.NewClient(stored.API, interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return test.response
				},
			})
			run := &unregistration{
				Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Force: test.force, Log: t.Logf},
				member:     clusterclienttest.NewClient(t, ""), memberID: "member", karmada: stored, usesAgentCredentials: test.usesAgentCredentials,
			}
			err := run.findCluster(t.Context())
			if (err == nil) != test.continues || (run.karmada == nil) != test.continues {
				t.Errorf("error %v, continues with the control plane: %t", err, run.karmada != nil)
			}
			if err != nil && !errors.Is(err, test.response) {
				t.Errorf("error %v does not wrap the response", err)
			}
		})
	}
}

func TestUnregisterRejectsWrongMember(t *testing.T) {
	tests := map[string]struct {
		id   string
		mode clusterv1alpha1.ClusterSyncMode
		want string
	}{
		"the same cluster":       {id: "member", mode: clusterv1alpha1.Pull},
		"another cluster":        {id: "other", mode: clusterv1alpha1.Pull, want: `it has ID member, Cluster "east" has other; choose the right context`},
		"a cluster in push mode": {id: "member", mode: clusterv1alpha1.Push, want: `cluster "east" is in Push mode: use unjoin`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := clusterclienttest.NewCluster("east", test.id, test.mode)
			run := &unregistration{
				Unregister: Unregister{Name: "east", Wait: registration.DefaultWait, Force: true, Log: t.Logf},
				member:     clusterclienttest.NewClient(t, ""), memberID: "member", karmada: clusterclienttest.NewClient(t, "", &stored),
			}
			err := run.findCluster(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err == nil && run.cluster == nil {
				t.Error("the Cluster was not found")
			}
		})
	}
}

func TestFailedRegisterDeletesOnlyOwnCluster(t *testing.T) {
	requestedAt := metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	tests := map[string]struct {
		id        string
		age       time.Duration
		remaining []string
	}{
		"a Cluster created after the request":  {id: "member"},
		"a Cluster created before the request": {id: "member", age: time.Hour, remaining: []string{"Cluster east"}},
		"a Cluster of another agent":           {id: "other", remaining: []string{"Cluster east"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := clusterclienttest.NewCluster("east", test.id, clusterv1alpha1.Pull)
			stored.CreationTimestamp = metav1.NewTime(requestedAt.Add(-test.age))
			failed := &agentIdentity{
				register: Register{Name: "east"}, id: "member", karmada: clusterclienttest.NewClient(t, "", &stored),
				request: &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: requestedAt}},
			}
			if err := failed.rollBack(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.remaining, clusterclienttest.ListContent(t, failed.karmada)); diff != "" {
				t.Errorf("remaining objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnregisterReadsOwner(t *testing.T) {
	deployment := func(owner string) []client.Object {
		annotations := map[string]string{clusterv1alpha1.ControlPlaneAnnotation: owner}
		return []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: AgentName, Annotations: annotations}}}
	}
	const id = "5d0b5a4c-53a2-4c92-9d68-1d3a5a1f9e0b"
	karmada := clusterclienttest.NewClient(t, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: id}})
	tests := map[string]struct {
		karmada   *clusterclient.Client
		objects   []client.Object
		want, err string
	}{
		"the agent of this control plane":              {karmada: karmada, objects: deployment(id), want: id},
		"an agent of an earlier version":               {karmada: karmada, objects: deployment(""), want: id},
		"no agent":                                     {karmada: karmada, want: id},
		"the control plane does not answer":            {objects: deployment("other"), want: "other"},
		"the control plane does not show its identity": {karmada: clusterclienttest.NewClient(t, ""), objects: deployment("other"), want: "other"},
		"the agent of another control plane": {
			karmada: karmada, objects: deployment("other"), want: id,
			err: "the agent in it (https://it) belongs to the control plane with ID other, not to the one with ID " + id,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unregistration{
				Unregister: Unregister{Name: "east", Namespace: "agents", AgentName: AgentName, Wait: time.Minute},
				member:     clusterclienttest.NewClient(t, "", test.objects...), memberID: "member", karmada: test.karmada,
			}
			err := u.readOwner(t.Context())
			if u.member.Owner != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %q and %v, want %q and %q", u.member.Owner, err, test.want, test.err)
			}
		})
	}
}
