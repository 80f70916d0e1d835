package integration

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	agents "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/bootstraptoken"
	"karmada.io/karmada/internal/registration/pull"
	"karmada.io/karmada/internal/testenv"
)

// foreign makes the control plane one of another release, until the test ends: it
// approves certificates of agents and leaves it to the register command to grant
// their rights, as a user who may do everything.
func foreign(t *testing.T, env *testenv.Env) {
	t.Helper()
	withSettings(t, env, "", func(s *programs.Settings) { s.Controllers.Selected = []string{"*", "-agentcsrapproving"} })
	for _, name := range []string{"karmada-agent", agents.GeneratorPolicy} {
		without(t, env, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
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
	generator := as(t, env, config)
	testenv.Eventually(t, "the generator may do everything", func(ctx context.Context) error {
		probe := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "anything"}}
		return generator.Create(ctx, probe, client.DryRunAll)
	})
	approveAsOthersDo(t, env)
}

// without deletes the object, and makes it again when the test ends.
func without(t *testing.T, env *testenv.Env, object client.Object) {
	t.Helper()
	object = await(t, env.Karmada, object, exists)
	deleteObject(t, env.Karmada, object)
	object.SetResourceVersion("")
	object.SetUID("")
	t.Cleanup(func() {
		if err := env.Karmada.Create(context.WithoutCancel(t.Context()), object); err != nil {
			t.Errorf("making %T %s again: %v", object, object.GetName(), err)
		}
	})
}

// approveAsOthersDo approves certificates of agents of whoever may have them, without
// a look at who else has the name, until the test ends.
func approveAsOthersDo(t *testing.T, env *testenv.Env) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	requests, err := env.Karmada.Watch(ctx, &certificatesv1.CertificateSigningRequestList{})
	if err != nil {
		stop()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range requests.ResultChan() {
			if request, ok := event.Object.(*certificatesv1.CertificateSigningRequest); ok && ofAnAgent(request) {
				if err := approveIfAllowed(ctx, env, request); err != nil && ctx.Err() == nil {
					t.Errorf("approving %s: %v", request.Name, err)
				}
			}
		}
	}()
	t.Cleanup(func() {
		requests.Stop()
		stop()
		<-ended
	})
}

// ofAnAgent tells whether a request that nobody has answered is for an agent.
func ofAnAgent(request *certificatesv1.CertificateSigningRequest) bool {
	block, _ := pem.Decode(request.Spec.Request)
	if block == nil || len(request.Status.Conditions)+len(request.Status.Certificate) > 0 || request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return false
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	return err == nil && slices.Equal(asked.Subject.Organization, []string{agents.Group}) && strings.HasPrefix(asked.Subject.CommonName, agents.UserPrefix)
}

func approveIfAllowed(ctx context.Context, env *testenv.Env, request *certificatesv1.CertificateSigningRequest) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: request.Spec.Username, Groups: request.Spec.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create", Subresource: "clusteragent",
		},
	}}
	if err := env.Karmada.Create(ctx, review); err != nil || !review.Status.Allowed {
		return err
	}
	return approve(ctx, env, request, "Auto approving karmada agent certificate after SubjectAccessReview.")
}

func approve(ctx context.Context, env *testenv.Env, request *certificatesv1.CertificateSigningRequest, message string) error {
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: message,
	})
	return env.Karmada.SubResource("approval").Update(ctx, request)
}

// requestsFor lists the requests of registrations under the name.
func requestsFor(t *testing.T, env *testenv.Env, name string) []string {
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

// forgetRequests deletes the requests of earlier tests.
func forgetRequests(t *testing.T, env *testenv.Env) {
	t.Helper()
	for _, name := range requestsFor(t, env, newcomer) {
		deleteObject(t, env.Karmada, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

func TestAClusterRegistersWithTheControlPlaneOfAnotherRelease(t *testing.T) {
	env := alone(t)
	foreign(t, env)
	token := newToken(t, env, bootstraptoken.Token{})
	t.Run("one that fails leaves nothing", func(t *testing.T) {
		forgetRequests(t, env)
		wanted := registering(t, env, token)
		wanted.Timeout = 7 * time.Second
		failsToRegister(t, wanted, " is not ready after ")
		nothingIsLeft(t, env)
		if left := requestsFor(t, env, newcomer); len(left) > 0 {
			t.Errorf("requests for certificates are left: %v", left)
		}
	})
	t.Run("one that fails leaves what was there before", func(t *testing.T) { foreignKeepsWhatWasThere(t, env, token) })
	t.Run("a name that a cluster with credentials has", func(t *testing.T) {
		wanted := registering(t, env, token)
		wanted.Name = member1
		err := wanted.Run(t.Context())
		var taken *registration.RegisteredError
		if !errors.As(err, &taken) || taken.Existing.Name != member1 || taken.IsSameCluster() {
			t.Errorf("got %v", err)
		}
		await(t, env.Karmada, clusterNamed(member1), exists)
		await(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agents.ExecutionNamespace(member1)}}, func(space *corev1.Namespace) error {
			if space.DeletionTimestamp != nil {
				return errors.New("it is being deleted")
			}
			return nil
		})
		if err := absent(t.Context(), env.Karmada, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(member1)}}); err != nil {
			t.Errorf("the rights of its agent: %v", err)
		}
		if found := memberHolds(t, env); len(found) > 0 {
			t.Errorf("the member holds %v", found)
		}
	})
	config := register(t, env, registering(t, env, token))
	karmada := as(t, env, config)
	t.Run("the agent may do what it has to", func(t *testing.T) { agentMay(t, env, karmada) })
	t.Run("nobody is the one who may do everything any more", func(t *testing.T) {
		for _, name := range requestsFor(t, env, newcomer) {
			if strings.HasPrefix(name, "agent-rbac-generator-") {
				t.Errorf("request %s is left", name)
			}
		}
	})
	t.Run("a name that a cluster with an agent has", func(t *testing.T) {
		other := registering(t, env, token)
		other.Member, other.Namespace = env.Members[member2].Config, "elsewhere"
		err := other.Run(t.Context())
		var taken *registration.RegisteredError
		if !errors.As(err, &taken) || taken.Existing.Name != newcomer || taken.IsSameCluster() {
			t.Errorf("got %v", err)
		}
		for _, right := range agents.RBACObjects(newcomer, "karmada-cluster") {
			await(t, env.Karmada, client.Object(right), func(client.Object) error { return nil })
		}
		if err := karmada.Get(t.Context(), client.ObjectKey{Name: newcomer}, &clusterv1alpha1.Cluster{}); err != nil {
			t.Errorf("the agent that was there: %v", err)
		}
	})
	unregister := pull.Unregister{Name: newcomer, Member: env.Members[member3].Config, Karmada: env.Config, Wait: testenv.Patience, Log: t.Logf}
	if err := unregister.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	nothingIsLeft(t, env)
}

// foreignKeepsWhatWasThere fails to register where somebody has made some of what
// the agent needs.
func foreignKeepsWhatWasThere(t *testing.T, env *testenv.Env, token bootstraptoken.Token) {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agents.ExecutionNamespace(newcomer), Labels: map[string]string{"mine": "yes"}}}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: agents.RoleName(newcomer)},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}}},
	}
	for _, object := range []client.Object{space, role} {
		if err := env.Karmada.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	wanted := registering(t, env, token)
	wanted.Timeout = 7 * time.Second
	failsToRegister(t, wanted, " is not ready after ")
	await(t, env.Karmada, space, func(now *corev1.Namespace) error {
		if now.UID != space.UID || now.DeletionTimestamp != nil {
			return fmt.Errorf("it is another one, or on its way out: %v", now.ObjectMeta)
		}
		return nil
	})
	await(t, env.Karmada, role, func(now *rbacv1.ClusterRole) error {
		if now.UID != role.UID || !slices.ContainsFunc(now.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "services") }) {
			return fmt.Errorf("rights were taken away: %v", now.Rules)
		}
		return nil
	})
	for _, right := range agents.RBACObjects(newcomer, "karmada-cluster")[1:] {
		awaitGone(t, env.Karmada, right)
	}
	deleteObject(t, env.Karmada, role)
	deleteObject(t, env.Karmada, space)
	nothingIsLeft(t, env)
}
