package integration

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	agents "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/testenv"
)

// simulateOtherRelease makes the control plane behave like the control plane of another release
// until the test ends: it approves certificates of agents, and the register command grants the
// permissions of the agent as a user with all permissions.
func simulateOtherRelease(t *testing.T, env *testenv.Env) {
	t.Helper()
	withSettings(t, env, "", func(s *controllermanager.Options) { s.Selected = []string{"*", "-agentcsrapproving"} })
	for _, name := range []string{"karmada-agent", agents.GeneratorPolicy} {
		deleteDuringTest(t, env, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:karmada:agent-rbac-generator"}}
	before := await(t, env.Karmada, role, exists).Rules
	setRules := func(rules []rbacv1.PolicyRule) {
		testenv.Update(t, env.Karmada, role, func(role *rbacv1.ClusterRole) { role.Rules = rules })
	}
	t.Cleanup(func() { setRules(before) })
	setRules([]rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}, {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	})
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: agents.GeneratorUser, Groups: []string{agents.Group, "system:authenticated"}}
	generator := newClientFor(t, env, config)
	testenv.Eventually(t, "the generator may do everything", func(ctx context.Context) error {
		probe := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "anything"}}
		return generator.Create(ctx, probe, client.DryRunAll)
	})
	approveLikeOtherReleases(t, env)
}

// deleteDuringTest deletes the object and creates it again when the test ends.
func deleteDuringTest(t *testing.T, env *testenv.Env, object client.Object) {
	t.Helper()
	object = await(t, env.Karmada, object, exists)
	deleteObject(t, env.Karmada, object)
	object.SetResourceVersion("")
	object.SetUID("")
	t.Cleanup(func() {
		if err := env.Karmada.Create(context.WithoutCancel(t.Context()), object); err != nil {
			t.Errorf("creating %T %s again: %v", object, object.GetName(), err)
		}
	})
}

// approveLikeOtherReleases approves certificate requests for agents from every permitted user
// until the test ends. It does not check whether another agent has the name.
func approveLikeOtherReleases(t *testing.T, env *testenv.Env) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var approving sync.WaitGroup
	approving.Go(func() {
		// A watch may end when the machine is busy. A new watch begins with the existing requests.
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			if err := approveWatchedRequests(ctx, env); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}, time.Second)
	})
	t.Cleanup(func() {
		stop()
		approving.Wait()
	})
}

// approveWatchedRequests approves certificate requests until the watch ends.
func approveWatchedRequests(ctx context.Context, env *testenv.Env) error {
	requests, err := env.Karmada.Watch(ctx, &certificatesv1.CertificateSigningRequestList{})
	if err != nil {
		return fmt.Errorf("watching certificate requests: %w", err)
	}
	defer requests.Stop()
	for event := range requests.ResultChan() {
		if request, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && isPendingAgentRequest(request) {
			// The request of an earlier watch may be approved or deleted by now.
			err := approveIfAllowed(ctx, env, request)
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("approving %s: %w", request.Name, err)
			}
		}
	}
	return nil
}

// isPendingAgentRequest reports whether a certificate request is for an agent and has no
// condition and no certificate.
func isPendingAgentRequest(request *certificatesv1.CertificateSigningRequest) bool {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil || len(request.Status.Conditions)+len(request.Status.Certificate) > 0 || request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return false
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && slices.Equal(csr.Subject.Organization, []string{agents.Group}) && strings.HasPrefix(csr.Subject.CommonName, agents.UserPrefix)
}

func approveIfAllowed(ctx context.Context, env *testenv.Env, request *certificatesv1.CertificateSigningRequest) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: request.Spec.Username, Groups: request.Spec.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Subresource: "clusteragent",
		},
	}}
	if err := env.Karmada.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not request certificates of agents", request.Spec.Username)
	}
	return approveRequest(ctx, env, request, "Auto approving karmada agent certificate after SubjectAccessReview.")
}

func approveRequest(ctx context.Context, env *testenv.Env, request *certificatesv1.CertificateSigningRequest, message string) error {
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: message,
	})
	return env.Karmada.SubResource("approval").Update(ctx, request)
}

// listSigningRequests returns the names of the certificate requests of registrations under the
// name.
func listSigningRequests(t *testing.T, env *testenv.Env, name string) []string {
	t.Helper()
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := env.Karmada.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, request := range list.Items {
		if strings.HasPrefix(request.Name, name+"-") || strings.HasPrefix(request.Name, "agent-rbac-generator-"+name) {
			names = append(names, request.Name)
		}
	}
	return names
}

// deleteSigningRequests deletes the certificate requests of earlier tests.
func deleteSigningRequests(t *testing.T, env *testenv.Env) {
	t.Helper()
	for _, name := range listSigningRequests(t, env, newcomer) {
		deleteObject(t, env.Karmada, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

func TestRegisterWithAControlPlaneOfAnotherRelease(t *testing.T) {
	env := aloneForLong(t)
	simulateOtherRelease(t, env)
	token := newBootstrapToken(t, env, registration.Token{})
	t.Run("a failed registration leaves nothing", func(t *testing.T) {
		deleteSigningRequests(t, env)
		command := newRegisterCommand(t, env, token)
		command.Timeout = 7 * time.Second
		checkRegistrationFails(t, command, " is not ready after ")
		awaitRegistrationRemoved(t, env)
		if left := listSigningRequests(t, env, newcomer); len(left) > 0 {
			t.Errorf("certificate requests remain: %v", left)
		}
	})
	t.Run("a failed registration keeps existing objects", func(t *testing.T) { testFailedRegistrationKeepsObjects(t, env, token) })
	t.Run("the name of a push-mode cluster", func(t *testing.T) {
		command := newRegisterCommand(t, env, token)
		command.Name = member1
		err := command.Run(t.Context())
		var registered *registration.RegisteredError
		if !errors.As(err, &registered) || registered.Existing.Name != member1 || registered.IsSameCluster() {
			t.Errorf("got %v", err)
		}
		await(t, env.Karmada, clusterNamed(member1), exists)
		await(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(member1)}}, func(ns *corev1.Namespace) error {
			if ns.DeletionTimestamp != nil {
				return errors.New("the namespace is being deleted")
			}
			return nil
		})
		if err := checkAbsent(t.Context(), env.Karmada, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(member1)}}); err != nil {
			t.Errorf("the permissions of an agent: %v", err)
		}
		if found := listAgentObjects(t, env); len(found) > 0 {
			t.Errorf("the member has %v", found)
		}
	})
	config := registerCluster(t, env, newRegisterCommand(t, env, token))
	karmada := newClientFor(t, env, config)
	t.Run("the agent has its permissions", func(t *testing.T) { checkAgentPermissions(t, env, karmada) })
	t.Run("the certificate request with all permissions is deleted", func(t *testing.T) {
		for _, name := range listSigningRequests(t, env, newcomer) {
			if strings.HasPrefix(name, "agent-rbac-generator-") {
				t.Errorf("request %s remains", name)
			}
		}
	})
	t.Run("the name of a pull-mode cluster", func(t *testing.T) {
		other := newRegisterCommand(t, env, token)
		other.Member, other.Namespace = env.Members[member2].Config, "elsewhere"
		err := other.Run(t.Context())
		var registered *registration.RegisteredError
		if !errors.As(err, &registered) || registered.Existing.Name != newcomer || registered.IsSameCluster() {
			t.Errorf("got %v", err)
		}
		for _, right := range agents.RBACObjects(newcomer, "karmada-cluster") {
			await(t, env.Karmada, client.Object(right), func(client.Object) error { return nil })
		}
		if err := karmada.Get(t.Context(), client.ObjectKey{Name: newcomer}, &clusterv1alpha1.Cluster{}); err != nil {
			t.Errorf("the registered agent: %v", err)
		}
	})
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Karmada: env.Config, Wait: testenv.Patience, Log: t.Logf}
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitRegistrationRemoved(t, env)
}

// testFailedRegistrationKeepsObjects lets a registration fail in a control plane that has some
// objects of the agent already.
func testFailedRegistrationKeepsObjects(t *testing.T, env *testenv.Env, token registration.Token) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(newcomer), Labels: map[string]string{"mine": "yes"}}}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(newcomer)},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}}},
	}
	for _, object := range []client.Object{ns, role} {
		if err := env.Karmada.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	command := newRegisterCommand(t, env, token)
	command.Timeout = 7 * time.Second
	checkRegistrationFails(t, command, " is not ready after ")
	await(t, env.Karmada, ns, func(now *corev1.Namespace) error {
		if now.UID != ns.UID || now.DeletionTimestamp != nil {
			return fmt.Errorf("the namespace is recreated or being deleted: %v", now.ObjectMeta)
		}
		return nil
	})
	await(t, env.Karmada, role, func(now *rbacv1.ClusterRole) error {
		if now.UID != role.UID || !slices.ContainsFunc(now.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "services") }) {
			return fmt.Errorf("rules were removed: %v", now.Rules)
		}
		return nil
	})
	for _, right := range agents.RBACObjects(newcomer, "karmada-cluster")[1:] {
		awaitGone(t, env.Karmada, right)
	}
	deleteObject(t, env.Karmada, role)
	deleteObject(t, env.Karmada, ns)
	awaitRegistrationRemoved(t, env)
}
