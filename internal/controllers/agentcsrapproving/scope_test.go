package agentcsrapproving

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
)

// newScopedToken returns the Secret of the token abcdef, which has the given scope.
func newScopedToken(scope string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "bootstrap-token-abcdef", Annotations: map[string]string{clusterv1alpha1.RegistrationScopeAnnotation: scope},
	}}
}

func TestScopeOfTokenLimitsRequest(t *testing.T) {
	const eu = `{"labels":{"tier":"bronze"},"region":"eu"}`
	tests := map[string]struct {
		token *corev1.Secret
		want  string
		// scope is the recorded scope.
		scope string
	}{
		"the location of the cluster":  {token: newScopedToken(eu), want: "Approved AutoApproved", scope: eu},
		"the name and the location":    {token: newScopedToken(`{"clusterName":"east","labels":{"tier":"bronze"},"region":"eu"}`), want: "Approved AutoApproved", scope: eu},
		"the name":                     {token: newScopedToken(`{"clusterName":"east"}`), want: "Approved AutoApproved"},
		"another name":                 {token: newScopedToken(`{"clusterName":"west"}`), want: "AgentNotApproved OutOfTokenScope"},
		"a deleted token":              {token: nil, want: "AgentNotApproved OutOfTokenScope"},
		"a scope that was removed":     {token: newScopedToken(""), want: "AgentNotApproved OutOfTokenScope"},
		"a scope of a later release":   {token: newScopedToken(`{"country":"x"}`), want: "AgentNotApproved OutOfTokenScope"},
		"a scope that is not readable": {token: newScopedToken("{"), want: "AgentNotApproved OutOfTokenScope"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := newRequest(t, "east-1", "east")
			request.Spec.Username, request.Spec.Groups = "system:bootstrap:abcdef", []string{agent.BootstrapGroup, agent.ScopedGroup}
			// The namespace remains from an earlier registration.
			objects := []client.Object{request, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace("east")}}}
			if test.token != nil {
				objects = append(objects, test.token)
			}
			karmada := newControlPlane(t, objects...)
			if err := reconcileUntilStable(newReconciler(karmada), item{request: request.Name}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.want}, listConditions(t, karmada, request.Name)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east")}}
			if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(role), role); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if got := role.Annotations[clusterv1alpha1.RegistrationScopeAnnotation]; got != test.scope {
				t.Errorf("the scope is %q, want %q", got, test.scope)
			}
		})
	}
}

func TestScopeIsRestoredWithPermissions(t *testing.T) {
	role := newManagedRole()
	role.Annotations = map[string]string{clusterv1alpha1.AgentRequestAnnotation: "1", clusterv1alpha1.ClusterNamespaceAnnotation: "clusters", clusterv1alpha1.RegistrationScopeAnnotation: `{"region":"eu"}`}
	karmada := newControlPlane(t, newPullCluster(), role)
	r := newReconciler(karmada)
	if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	deletePermissions(t, karmada)
	if err := reconcileUntilStable(r, item{cluster: "east"}); err != nil {
		t.Fatal(err)
	}
	restored := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east")}}
	if err := karmada.Get(t.Context(), client.ObjectKeyFromObject(restored), restored); err != nil {
		t.Fatal(err)
	}
	if got := restored.Annotations[clusterv1alpha1.RegistrationScopeAnnotation]; got != `{"region":"eu"}` {
		t.Errorf("the scope is %q", got)
	}
}
