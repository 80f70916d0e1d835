package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	agents "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/registration/push"
	"karmada.io/karmada/internal/testenv"
)

// newcomer is the name of the cluster that these tests register. The cluster is the API server of
// member3, which is registered as member3 already. The control plane does not notice that both are
// the same cluster.
const newcomer = "newcomer"

// newBootstrapToken creates a token, which is deleted when the test ends.
func newBootstrapToken(t *testing.T, env *testenv.Env, token registration.Token) registration.Token {
	t.Helper()
	created, err := registration.CreateToken(t.Context(), env.Config, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registration.DeleteToken(context.WithoutCancel(t.Context()), env.Config, created.ID) })
	return created
}

// newRegisterCommand returns the register command as the administrator of the member runs it.
func newRegisterCommand(t *testing.T, env *testenv.Env, token registration.Token) pull.Register {
	t.Helper()
	pins, err := registration.CAPins(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	// Create the namespace in advance, so that no run of the register command creates and later
	// deletes it. No controller in the member completes the deletion of a namespace.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}}
	if err := memberClient(env, member3).Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	return pull.Register{
		Endpoint: strings.TrimPrefix(env.Config.Host, "https://"), Name: newcomer, Token: token.String(), CAHashes: []string{pins[0].String()},
		Member: env.Members[member3].Config, Timeout: testenv.Patience, Region: "eu", Zones: []string{"a", "b"}, Log: t.Logf,
	}
}

func agentDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent"}}
}

// setAgentReady sets the status of the agent's Deployment, as the controllers of the member do.
func setAgentReady(t *testing.T, env *testenv.Env) *appsv1.Deployment {
	t.Helper()
	deployment := await(t, memberClient(env, member3), agentDeployment(), func(*appsv1.Deployment) error { return nil })
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, ReadyReplicas: 1,
	}
	if err := memberClient(env, member3).Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	return deployment
}

// registerCluster registers the cluster, creates the Cluster like its agent, and returns the
// client configuration of the agent.
func registerCluster(t *testing.T, env *testenv.Env, command pull.Register) *rest.Config {
	t.Helper()
	var registering sync.WaitGroup
	registering.Go(func() {
		if err := command.Run(t.Context()); err != nil {
			t.Errorf("registering %s: %v", command.Name, err)
		}
	})
	// If the simulated agent finds nothing to start, the test ends before the command.
	t.Cleanup(registering.Wait)
	config := simulateAgentStart(t, env, command.Name)
	registering.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return config
}

// simulateAgentStart creates the Cluster like a starting agent and returns the client
// configuration of the agent.
func simulateAgentStart(t *testing.T, env *testenv.Env, name string) *rest.Config {
	t.Helper()
	setAgentReady(t, env)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"}}
	secret = await(t, memberClient(env, member3), secret, exists)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["karmada-kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	karmada, cluster := newClientFor(t, env, config), newAgentCluster(t, env, name)
	testenv.Eventually(t, "the agent creates its Cluster", func(ctx context.Context) error { return karmada.Create(ctx, cluster) })
	return config
}

func newClientFor(t *testing.T, env *testenv.Env, config *rest.Config) client.Client {
	t.Helper()
	created, err := client.New(config, client.Options{Scheme: env.Karmada.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// newAgentCluster returns the Cluster that the agent creates.
func newAgentCluster(t *testing.T, env *testenv.Env, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	system := await(t, memberClient(env, member3), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}, exists)
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: string(system.UID), SyncMode: clusterv1alpha1.Pull, APIEndpoint: env.Members[member3].Config.Host},
	}
}

// listAgentObjects lists the objects of a registration that the member has.
func listAgentObjects(t *testing.T, env *testenv.Env) []string {
	t.Helper()
	var found []string
	for _, object := range []client.Object{
		agentDeployment(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-kubeconfig"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-sa"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "karmada-agent"}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "karmada-agent"}},
	} {
		err := memberClient(env, member3).Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if err == nil {
			found = append(found, fmt.Sprintf("%T", object))
		}
	}
	return found
}

// awaitRegistrationRemoved waits until neither the member nor the control plane has objects of
// the registration.
func awaitRegistrationRemoved(t *testing.T, env *testenv.Env) {
	t.Helper()
	if found := listAgentObjects(t, env); len(found) > 0 {
		t.Errorf("the member has %v", found)
	}
	for _, right := range agents.RBACObjects(newcomer, "karmada-cluster") {
		awaitGone(t, env.Karmada, right)
	}
	awaitGone(t, env.Karmada, clusterNamed(newcomer))
	awaitGone(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(newcomer)}})
}

func TestRegisterWithATokenAndUnregister(t *testing.T) {
	env := alone(t)
	config := registerCluster(t, env, newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{})))
	karmada := newClientFor(t, env, config)
	t.Run("the agent has its permissions", func(t *testing.T) {
		checkAgentPermissions(t, env, karmada)
	})
	t.Run("the agent has no other permissions", func(t *testing.T) {
		testAgentAttacks(t, env, config)
	})
	t.Run("the permissions of the agent are owned by the Cluster and recreated", func(t *testing.T) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(newcomer)}}
		owner := func(role *rbacv1.ClusterRole) error {
			if len(role.OwnerReferences) != 1 || role.OwnerReferences[0].Kind != "Cluster" {
				return fmt.Errorf("the owners are %v", role.OwnerReferences)
			}
			return nil
		}
		before := await(t, env.Karmada, role, owner)
		if err := env.Karmada.Delete(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		await(t, env.Karmada, role, func(now *rbacv1.ClusterRole) error {
			if now.UID == before.UID {
				return errors.New("the ClusterRole is not recreated")
			}
			for _, key := range []string{clusterv1alpha1.AgentRequestAnnotation, clusterv1alpha1.AgentRequesterAnnotation, clusterv1alpha1.ClusterNamespaceAnnotation} {
				if now.Annotations[key] == "" || now.Annotations[key] != before.Annotations[key] {
					return fmt.Errorf("annotation %s is %q, want %q", key, now.Annotations[key], before.Annotations[key])
				}
			}
			return owner(now)
		})
		for _, right := range agents.RBACObjects(newcomer, "karmada-cluster") {
			await(t, env.Karmada, client.Object(right), func(client.Object) error { return nil })
		}
	})
	t.Run("the name cannot be registered again", func(t *testing.T) {
		err := newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{})).Run(t.Context())
		var findings *pull.PreflightError
		if !errors.As(err, &findings) || len(findings.Findings) != 3 {
			t.Errorf("registering in the same member: %v", err)
		}
		other := newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{}))
		other.Member, other.Namespace = env.Members[member2].Config, "elsewhere"
		if err = other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `Cluster "newcomer" exists: choose another name`) {
			t.Errorf("registering in another member: %v", err)
		}
		if err := checkAbsent(t.Context(), memberClient(env, member2), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}); err != nil {
			t.Errorf("the other member was changed: %v", err)
		}
		await(t, env.Karmada, clusterNamed(newcomer), exists)
	})
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Wait: testenv.Patience, Log: t.Logf}
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

func checkAgentPermissions(t *testing.T, env *testenv.Env, karmada client.Client) {
	cluster := newAgentCluster(t, env, newcomer)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: newcomer}}
	leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-" + newcomer}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: newcomer}}
	cleanUp(t, env, leader, lease, secret)
	for _, object := range []client.Object{lease, leader, secret} {
		if err := karmada.Create(t.Context(), object); err != nil {
			t.Errorf("creating %T: %v", object, err)
		}
	}
	if err := karmada.List(t.Context(), &clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": newcomer}); err != nil {
		t.Error(err)
	}
	if err := karmada.List(t.Context(), &workv1alpha1.WorkList{}, client.InNamespace(work.ExecutionNamespace(newcomer))); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, "the agent reports status", func(ctx context.Context) error {
		if err := karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		cluster.Status.KubernetesVersion = "v1.36.3"
		return karmada.Status().Update(ctx, cluster)
	})
}

func TestFailedRegistrationLeavesNothing(t *testing.T) {
	env := joiningMember3(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	tests := map[string]struct {
		token  registration.Token
		change func(*pull.Register)
		want   []string
	}{
		"another certificate authority": {
			change: func(r *pull.Register) { r.CAHashes = []string{"sha256:" + strings.Repeat("ab", 32)} },
			want:   []string{"cannot be trusted", "matches none of the given hashes", "check the hash"},
		},
		"an unknown token": {
			change: func(r *pull.Register) { r.Token, r.Timeout = "aaaaaa.0123456789abcdef", testenv.Patience },
			want:   []string{"the control plane does not know the token", "is unknown, has expired", "token create"},
		},
		"a token with the wrong secret": {
			change: func(r *pull.Register) { r.Token = r.Token[:7] + "0123456789abcdef" },
			want:   []string{"cannot be trusted", "was not signed with the secret of token"},
		},
		"an expired token": {
			token: registration.Token{Expires: time.Now().Add(-time.Minute)}, want: []string{"has expired"},
		},
		"a token without the usage signing": {
			token: registration.Token{Usages: []string{registration.UsageAuthentication}}, want: []string{"lacks the usage signing"},
		},
		"a token without the usage authentication": {
			token: registration.Token{Usages: []string{registration.UsageSigning}}, want: []string{"lacks the usage authentication"},
		},
		"a token of another group": {
			token: registration.Token{Groups: []string{"system:bootstrappers:others"}}, want: []string{"is not in group system:bootstrappers:karmada:default-cluster-token"},
		},
		"a name that is taken": {
			change: func(r *pull.Register) { r.Name, r.Timeout = member1, testenv.Patience },
			want:   []string{`Cluster "member1" exists`, "choose another name"},
		},
		"a namespace without the label of Karmada": {
			change: func(r *pull.Register) { r.ClusterNamespace, r.Timeout = "kube-system", testenv.Patience },
			want:   []string{"kubectl label namespace kube-system karmada.io/system=true"},
		},
		"no server at the endpoint": {
			change: func(r *pull.Register) { r.Endpoint = closedAddress(t) },
			want:   []string{"could not be discovered within", "Check host and port"},
		},
		"a server that does not answer": {
			change: func(r *pull.Register) { r.Endpoint = silent.Addr().String() },
			want:   []string{"could not be discovered within"},
		},
		"an API server that is not a Karmada control plane": {
			change: func(r *pull.Register) {
				r.Endpoint = strings.TrimPrefix(env.Members[member1].Config.Host, "https://")
			},
			want: []string{"ConfigMap kube-public/cluster-info is missing or not readable"},
		},
		"an agent whose Pods are not created": {
			want: []string{`the agent of member "newcomer" is not ready after `, "no controller creates its Pods"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command := newRegisterCommand(t, env, newBootstrapToken(t, env, test.token))
			command.Timeout = 2 * time.Second
			if test.change != nil {
				test.change(&command)
			}
			checkRegistrationFails(t, command, test.want...)
			awaitRegistrationRemoved(t, env)
		})
	}
	await(t, env.Karmada, clusterNamed(member1), exists)
}

// checkRegistrationFails checks that a registration fails with an error that contains the
// parts. It retries with a longer timeout if a slow machine did not reach that error in time.
func checkRegistrationFails(t *testing.T, command pull.Register, wantParts ...string) {
	t.Helper()
	for _, timeout := range []time.Duration{command.Timeout, 15 * time.Second, testenv.Patience} {
		attempt := command
		attempt.Timeout = timeout
		err := attempt.Run(t.Context())
		if err == nil {
			t.Fatal("the registration succeeds")
		}
		missing := false
		for _, part := range wantParts {
			missing = missing || !strings.Contains(err.Error(), part)
		}
		if !missing {
			return
		}
		if timeout == testenv.Patience || !strings.Contains(err.Error(), attempt.Timeout.String()) {
			t.Fatalf("got %v, want %q", err, wantParts)
		}
		t.Logf("retrying with a longer timeout after: %v", err)
	}
}

func TestInvalidClusterFieldIsReportedBeforeTheAgentIsInstalled(t *testing.T) {
	env := alone(t)
	command := newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{}))
	command.ProxyURL = "ftp://proxy"
	command.Log = func(format string, args ...any) {
		if message := fmt.Sprintf(format, args...); strings.Contains(message, "Installing the agent") {
			t.Error("the command installs the agent")
		}
	}
	err := command.Run(t.Context())
	for _, part := range []string{`would not accept "newcomer" as a member`, "spec.proxyURL"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q", err, part)
		}
	}
	awaitRegistrationRemoved(t, env)
}

func closedAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", freePort(t))
}

func TestRegistrationReportsWhyTheAgentDoesNotStart(t *testing.T) {
	env := joiningMember3(t)
	command := newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{}))
	command.Timeout = 3 * time.Second
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "karmada-agent-1", Labels: map[string]string{"app": "karmada-agent"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "karmada-agent", Image: "nowhere/agent:v0"}}},
	}
	if err := memberClient(env, member3).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = memberClient(env, member3).Delete(context.WithoutCancel(t.Context()), pod, client.GracePeriodSeconds(0))
	})
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "karmada-agent", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "there is no image nowhere/agent:v0"}},
	}}
	if err := memberClient(env, member3).Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	checkRegistrationFails(t, command, "0 of 1 replicas available", "Pod karmada-system/karmada-agent-1: ImagePullBackOff: there is no image")
	awaitRegistrationRemoved(t, env)
}

// registerWithWork registers the cluster with an agent that stops at once, and creates a Work
// that no agent withdraws.
func registerWithWork(t *testing.T, env *testenv.Env, finalizers ...string) {
	t.Helper()
	registerCluster(t, env, newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{})))
	env.Create(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: work.ExecutionNamespace(newcomer), Name: "held", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}})
	testenv.Update(t, env.Karmada, clusterNamed(newcomer), func(c *clusterv1alpha1.Cluster) { c.Finalizers = append(c.Finalizers, finalizers...) })
}

func TestUnregisterWithAStoppedAgent(t *testing.T) {
	env := alone(t)
	registerWithWork(t, env)
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Wait: testenv.Patience, Log: t.Logf}
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

func TestUnregisterAClusterWithAnotherFinalizer(t *testing.T) {
	env := joiningMember3(t)
	registerWithWork(t, env, "example.com/held")
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Wait: 2 * time.Second, Log: t.Logf}
	err := unregister.Run(t.Context())
	for _, part := range []string{"is not gone after 2s", "finalizer example.com/held of the Cluster", "--force"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("without force: %v, want %q", err, part)
		}
	}
	if len(listAgentObjects(t, env)) == 0 {
		t.Error("the agent is deleted, so its objects cannot be withdrawn")
	}
	// Wait longer than before, because the same time limits the deletion of the agent in the
	// member.
	unregister.Force, unregister.Karmada, unregister.Wait = true, env.Config, 8*time.Second
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

func TestUnregisterWithoutAControlPlaneReportsRemainingObjects(t *testing.T) {
	env := joiningMember3(t)
	registerCluster(t, env, newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{})))
	t.Cleanup(func() { removeCluster(t, env, newcomer) })
	var messages []string
	unreachable := rest.CopyConfig(env.Config)
	unreachable.Host = "https://" + closedAddress(t)
	unregister := pull.Unregister{
		Name: newcomer, Member: env.Members[member3].Config, Karmada: unreachable, Wait: 5 * time.Second,
		Log: func(format string, args ...any) { messages = append(messages, fmt.Sprintf(format, args...)) },
	}
	if err := unregister.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "Nothing was changed. Use --force") {
		t.Errorf("without force: %v", err)
	}
	unregister.Force = true
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"  Cluster newcomer", "  ClusterRole system:karmada:newcomer:agent"} {
		if !slices.Contains(messages, left) {
			t.Errorf("%q is not reported: %q", left, messages)
		}
	}
	if found := listAgentObjects(t, env); len(found) > 0 {
		t.Errorf("the member has %v", found)
	}
}

func TestClusterNameIsRegisteredByOneTokenHolderOnly(t *testing.T) {
	env := alone(t)
	command := newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{}))
	done := make(chan error, 1)
	go func() { done <- command.Run(t.Context()) }()
	await(t, memberClient(env, member3), agentDeployment(), exists)
	// At this time, the certificate is issued, and the Cluster does not exist yet.
	other := newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{}))
	other.Member, other.Namespace = env.Members[member2].Config, "elsewhere"
	if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "kubectl delete clusterrole system:karmada:newcomer:agent") {
		t.Errorf("registering with another token: %v", err)
	}
	var refused bool
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := env.Karmada.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, request := range list.Items {
		for _, condition := range request.Status.Conditions {
			refused = refused || condition.Type == agents.ConditionNotApproved && condition.Reason == clusterv1alpha1.AgentReasonCertificateIssued
		}
	}
	if !refused {
		t.Error("no request has the reason why it was not approved")
	}
	simulateAgentStart(t, env, newcomer)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Karmada: env.Config, Force: true, Wait: testenv.Patience, Log: t.Logf}
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

func TestRBACGeneratorCreatesAgentRolesOnly(t *testing.T) {
	env := joining(t)
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: agents.GeneratorUser, Groups: []string{agents.Group, "system:authenticated"}}
	generator := newClientFor(t, env, config)
	const cluster = "generated"
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(cluster)}}
	cleanUp(t, env, ns)
	if err := generator.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	for _, right := range otherReleaseAgentRights(cluster) {
		cleanUp(t, env, right)
		if err := generator.Create(t.Context(), right); err != nil {
			t.Errorf("%T %s: %v", right, right.GetName(), err)
		}
	}
	poorer := otherReleaseAgentRights(cluster)[0].(*rbacv1.ClusterRole)
	poorer.Rules = poorer.Rules[1:]
	if err := generator.Update(t.Context(), poorer); !apierrors.IsForbidden(err) {
		t.Errorf("removing rules: %v", err)
	}
	for description, change := range map[string]func(client.Object){
		"a finalizer": func(o client.Object) { o.SetFinalizers([]string{"mine.example.com/x"}) },
		"an owner": func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "gone", UID: "gone"}})
		},
		"an annotation": func(o client.Object) {
			o.SetAnnotations(map[string]string{clusterv1alpha1.AgentRequestAnnotation: "x"})
		},
		"a label": func(o client.Object) { o.SetLabels(map[string]string{clusterv1alpha1.AgentLabel: cluster}) },
	} {
		stored := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(cluster)}}
		if err := generator.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
			t.Fatal(err)
		}
		change(stored)
		if err := generator.Update(t.Context(), stored); !apierrors.IsForbidden(err) {
			t.Errorf("setting %s on a role: %v", description, err)
		}
		created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace("squatted")}}
		cleanUp(t, env, created)
		change(created)
		if err := generator.Create(t.Context(), created); !apierrors.IsForbidden(err) {
			t.Errorf("setting %s on a namespace: %v", description, err)
		}
	}
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	role.Name, binding.Name = agents.RoleName("evil"), agents.RoleName("evil")
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: binding.Name}
	subject := func(kind, name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
	}
	rule := func(group, resource string, verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}
	}
	tests := map[string]client.Object{
		"all permissions":                   &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: rule("*", "*", "*")},
		"all Secrets":                       &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: rule("", "secrets", "get")},
		"all verbs":                         &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: rule("", "events", "*")},
		"deletion of any Cluster":           &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: rule("cluster.karmada.io", "clusters", "delete")},
		"non-resource URLs":                 &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}}},
		"a role with another name":          &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
		"an aggregated role":                &rbacv1.ClusterRole{ObjectMeta: role.ObjectMeta, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}},
		"a binding to the generator":        &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, RoleRef: binding.RoleRef, Subjects: subject("User", agents.GeneratorUser)},
		"a binding to a group":              &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, RoleRef: binding.RoleRef, Subjects: subject("Group", agents.User("evil"))},
		"a binding to another agent":        &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, RoleRef: binding.RoleRef, Subjects: subject("User", agents.User("good"))},
		"a binding of cluster-admin":        &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: subject("User", agents.User("evil"))},
		"the role of a Cluster that exists": &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(member1)}, Rules: rule("cluster.karmada.io", "clusters", "create")},
		"a namespace that stays":            &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace("squatted")}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"mine.example.com/x"}}},
		"Secrets of kube-system":            &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: agents.RoleName("evil") + "-secret"}},
		"Secrets of the components":         &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: agents.RoleName("evil") + "-secret"}},
		"Works of another cluster":          &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(member1), Name: agents.RoleName("evil") + "-work"}},
		"a namespace with another name":     &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
		"a Secret with another name":        &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "x"}},
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			cleanUp(t, env, object)
			if err := generator.Create(t.Context(), object); !apierrors.IsForbidden(err) {
				t.Errorf("got %v, want Forbidden", err)
			}
		})
	}
}

// otherReleaseAgentRights returns the permissions that the register command of other releases
// grants an agent.
func otherReleaseAgentRights(cluster string) []client.Object {
	rights := agents.RBACObjects(cluster, "karmada-cluster")
	general := rights[0].(*rbacv1.ClusterRole)
	general.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"}, ResourceNames: []string{cluster}, Verbs: []string{"get", "delete"}},
		{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"}, Verbs: []string{"create", "list", "watch"}},
		{APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/status"}, ResourceNames: []string{cluster}, Verbs: []string{"update"}},
		{APIGroups: []string{"config.karmada.io"}, Resources: []string{"resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"get", "create"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"patch", "create", "update"}},
	}
	var kept []client.Object
	for _, right := range rights {
		if !strings.HasSuffix(right.GetName(), "-lease") && !strings.HasSuffix(right.GetName(), "-epoch") {
			kept = append(kept, right)
		}
	}
	return kept
}

// signedConfig requests a certificate with a bootstrap token and returns a client configuration
// with that certificate.
func signedConfig(t *testing.T, env *testenv.Env, token registration.Token, name, user string) *rest.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{agents.Group}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(env.Config)
	config.TLSClientConfig = rest.TLSClientConfig{CAData: config.CAData, CAFile: config.CAFile}
	holder := rest.CopyConfig(config)
	holder.BearerToken = token.String()
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	reviews, err := authenticationclient.NewForConfig(holder)
	if err != nil {
		t.Fatal(err)
	}
	// The API server reads bootstrap tokens from a cache.
	testenv.Eventually(t, "the API server accepts the bootstrap token", func(ctx context.Context) error {
		_, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	})
	if err := newClientFor(t, env, holder).Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	request = await(t, env.Karmada, request, func(request *certificatesv1.CertificateSigningRequest) error {
		if len(request.Status.Certificate) == 0 {
			return fmt.Errorf("there is no certificate; the conditions are %v", request.Status.Conditions)
		}
		return nil
	})
	config.CertData = request.Status.Certificate
	if config.KeyData, err = keyutil.MarshalPrivateKeyToPEM(key); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestRegisterCommandOfOtherReleases(t *testing.T) {
	env := alone(t)
	token := newBootstrapToken(t, env, registration.Token{})
	request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "agent-rbac-generator-" + newcomer + "abcde"}}
	generator := newClientFor(t, env, signedConfig(t, env, token, request.Name, agents.GeneratorUser))
	if err := generator.Get(t.Context(), client.ObjectKey{Name: newcomer}, clusterNamed(newcomer)); !apierrors.IsNotFound(err) {
		t.Errorf("reading the Cluster: %v", err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(newcomer)}}
	cleanUp(t, env, ns)
	if err := generator.Create(t.Context(), ns); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	rights := otherReleaseAgentRights(newcomer)
	cleanUp(t, env, rights...)
	for _, right := range rights {
		if err := generator.Create(t.Context(), right); err != nil {
			t.Fatalf("%T %s: %v", right, right.GetName(), err)
		}
	}
	karmada := newClientFor(t, env, signedConfig(t, env, token, newcomer+"-abcde", agents.User(newcomer)))
	if err := generator.Delete(t.Context(), request); err != nil {
		t.Errorf("deleting its own request: %v", err)
	}
	if err := generator.Delete(t.Context(), &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: newcomer + "-abcde"}}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting another request: %v", err)
	}
	testenv.Eventually(t, "the agent reads Works", func(ctx context.Context) error {
		return karmada.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace(ns.Name))
	})
	role := await(t, env.Karmada, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(newcomer)}}, func(role *rbacv1.ClusterRole) error {
		if role.Annotations[clusterv1alpha1.AgentRequestAnnotation] == "" {
			return errors.New("the annotation with the certificate request is missing")
		}
		return nil
	})
	for _, right := range agents.RemovalObjects(newcomer) {
		if right.GetNamespace() == clusterv1alpha1.NamespaceKarmadaSystem { // the others follow after the registration
			await(t, env.Karmada, client.Object(right), exists)
		}
	}
	if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "services") }) {
		t.Errorf("the rules of the other release were changed: %v", role.Rules)
	}
	if err := newRegisterCommand(t, env, token).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "was issued to system:bootstrap:"+token.ID+" already") {
		t.Errorf("registering the name again: %v", err)
	}
}

func TestAgentRenewsOnlyItsOwnCertificate(t *testing.T) {
	env := alone(t)
	config := registerCluster(t, env, newRegisterCommand(t, env, newBootstrapToken(t, env, registration.Token{})))
	for user, want := range map[string]string{agents.User(newcomer): clusterv1alpha1.AgentReasonAutoApproved, agents.User("another"): clusterv1alpha1.AgentReasonNotAllowed} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{agents.Group}}}, key)
		if err != nil {
			t.Fatal(err)
		}
		seconds := int32(365 * 24 * 3600)
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "renewal-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, ExpirationSeconds: &seconds,
			},
		}
		if err := newClientFor(t, env, config).Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		request = await(t, env.Karmada, request, func(request *certificatesv1.CertificateSigningRequest) error {
			for _, condition := range request.Status.Conditions {
				if condition.Reason == want && (want != clusterv1alpha1.AgentReasonAutoApproved || len(request.Status.Certificate) > 0) {
					return nil
				}
			}
			return fmt.Errorf("the conditions are %v, want %s", request.Status.Conditions, want)
		})
		if want != clusterv1alpha1.AgentReasonAutoApproved {
			continue
		}
		block, _ := pem.Decode(request.Status.Certificate)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if life := certificate.NotAfter.Sub(certificate.NotBefore); life < 364*24*time.Hour {
			t.Errorf("the certificate is valid for %s, want a year", life)
		}
	}
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Karmada: env.Config, Force: true, Wait: testenv.Patience, Log: t.Logf}
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

func TestManuallyApprovedAgentGetsItsPermissions(t *testing.T) {
	env := alone(t)
	// The token may request certificates, but no controller approves the requests.
	token := newBootstrapToken(t, env, registration.Token{Groups: []string{"system:bootstrappers:others"}})
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "others-may-ask"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: token.Groups[0]}},
	}
	cleanUp(t, env, binding)
	if err := env.Karmada.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	request := newSigningRequest(t, newcomer+"-people", agents.User(newcomer))
	cleanUp(t, env, request)
	holder := newClientFor(t, env, tokenConfig(env, token))
	testenv.Eventually(t, "the token may create certificate requests", func(ctx context.Context) error { return holder.Create(ctx, request) })
	refused := await(t, env.Karmada, request, func(request *certificatesv1.CertificateSigningRequest) error {
		return checkRequestCondition(request, agents.ConditionNotApproved, clusterv1alpha1.AgentReasonNotAllowed)
	})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(newcomer)}}
	if err := checkAbsent(t.Context(), env.Karmada, role); err != nil {
		t.Errorf("permissions before the approval: %v", err)
	}
	refused.Status.Conditions = append(refused.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlApprove", Message: "This CSR was approved by kubectl certificate approve.",
	})
	if err := env.Karmada.SubResource("approval").Update(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, env, role)
	granted := await(t, env.Karmada, request, func(request *certificatesv1.CertificateSigningRequest) error {
		if len(request.Status.Certificate) == 0 {
			return errors.New("there is no certificate")
		}
		return checkRequestCondition(request, agents.ConditionPermissionsGranted, "ApprovedByOthers")
	})
	for _, right := range agents.RBACObjects(newcomer, "karmada-cluster") {
		found := await(t, env.Karmada, client.Object(right), func(client.Object) error { return nil })
		if _, is := found.(*rbacv1.ClusterRole); is && found.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation] != string(granted.UID) {
			t.Errorf("%T is for request %q, want %q", found, found.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation], granted.UID)
		}
	}
	t.Run("the name cannot be joined", func(t *testing.T) {
		join := push.Join{Name: newcomer, Karmada: env.Config, Member: env.Members[member3].Config, Log: t.Logf}
		if err := join.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "ClusterRole system:karmada:newcomer:agent exists in the control plane") {
			t.Errorf("got %v", err)
		}
		if err := checkAbsent(t.Context(), env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: newcomer}}); err != nil {
			t.Errorf("credentials in the Secret that the agent can read: %v", err)
		}
	})
	t.Run("the permissions are deleted when a push-mode cluster has the name", func(t *testing.T) {
		if err := env.Register(t.Context(), newcomer, env.Members[member3]); err != nil {
			t.Fatal(err)
		}
		for _, right := range agents.RBACObjects(newcomer, "karmada-cluster") {
			awaitGone(t, env.Karmada, right)
		}
		unregisterCluster(t, env, newcomer)
	})
	awaitRegistrationRemoved(t, env)
}

// checkRequestCondition returns an error if the certificate request lacks the condition with
// that reason.
func checkRequestCondition(request *certificatesv1.CertificateSigningRequest, conditionType certificatesv1.RequestConditionType, reason string) error {
	for _, condition := range request.Status.Conditions {
		if condition.Type == conditionType && condition.Reason == reason {
			return nil
		}
	}
	return fmt.Errorf("the conditions are %v, want %s with reason %s", request.Status.Conditions, conditionType, reason)
}

// tokenConfig returns the client configuration of the holder of a token.
func tokenConfig(env *testenv.Env, token registration.Token) *rest.Config {
	config := rest.CopyConfig(env.Config)
	config.TLSClientConfig = rest.TLSClientConfig{CAData: config.CAData, CAFile: config.CAFile}
	config.BearerToken = token.String()
	return config
}

// newSigningRequest returns a certificate request for a user in the group of agents.
func newSigningRequest(t *testing.T, name, user string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{agents.Group}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}
