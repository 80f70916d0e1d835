package aggregated

import (
	"errors"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"karmada.io/karmada/internal/domain/agent"
)

func TestAgentScopes(t *testing.T) {
	annotations := func(region string) map[string]string {
		return map[string]string{"cluster.karmada.io/registration-scope": `{"region":"` + region + `"}`}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:karmada:east:agent", Annotations: annotations("eu")}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-east", Annotations: annotations("us")}}
	invalid := role.DeepCopy()
	invalid.Annotations = map[string]string{"cluster.karmada.io/registration-scope": "{"}
	reserved, younger := role.DeepCopy(), role.DeepCopy()
	reserved.Annotations = map[string]string{"cluster.karmada.io/agent-request": "reserved"}
	younger.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Minute))
	tests := map[string]struct {
		objects []runtime.Object
		fails   bool
		// isAllowed is true if the agent may create Clusters.
		isAllowed bool
		// reason is the reason of the authorizer.
		reason  string
		want    string
		wantErr bool
	}{
		"the ClusterRole comes first":    {objects: []runtime.Object{role, namespace}, want: "eu"},
		"an agent that deleted its role": {objects: []runtime.Object{namespace}, wantErr: true},
		"an agent with roles of its own": {isAllowed: true, reason: `RBAC: allowed by ClusterRoleBinding "own" of ClusterRole "own" to User "x"`},
		"an agent whose deleted role is still cached": {isAllowed: true, wantErr: true,
			reason: `RBAC: allowed by ClusterRoleBinding "system:karmada:east:agent" of ClusterRole "system:karmada:east:agent" to User "x"`},
		"a name that is reserved for a join":   {objects: []runtime.Object{reserved}, isAllowed: true, wantErr: true},
		"a request older than the role":        {objects: []runtime.Object{younger}, isAllowed: true, wantErr: true},
		"a scope that cannot be parsed":        {objects: []runtime.Object{invalid}, wantErr: true},
		"an API server that does not respond":  {fails: true, wantErr: true},
		"an agent whose token had no scope":    {objects: []runtime.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}}, namespace}},
		"the scope of the agent of a neighbor": {objects: []runtime.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "system:karmada:west:agent", Annotations: annotations("eu")}}}, isAllowed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			karmada := fake.NewClientset(test.objects...)
			if test.fails {
				karmada.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("timeout") })
			}
			karmada.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				review.Status.Allowed = test.isAllowed && review.Spec.User == agent.User("east")
				review.Status.Reason = test.reason
				return true, review, nil
			})
			ctx := request.WithUser(request.WithReceivedTimestamp(t.Context(), time.Now()), &user.DefaultInfo{Name: agent.User("east")})
			scope, err := newScopeReader(karmada)(ctx, "east")
			if (err != nil) != test.wantErr || scope.Region != test.want {
				t.Errorf("got %+v, %v, want region %q, error: %t", scope, err, test.want, test.wantErr)
			}
		})
	}
}
