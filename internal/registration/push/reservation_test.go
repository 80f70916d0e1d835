package push

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

func TestJoinReservesItsName(t *testing.T) {
	karmada := clusterclienttest.NewClient(t, "")
	join := Join{Name: "east", ClusterNamespace: "ns"}
	if _, err := join.reserveName(t.Context(), karmada); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east")}}
	if err := karmada.API.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil || agent.IsRegistered(role) || len(role.Rules) > 0 {
		t.Errorf("reservation %+v, %v", role, err)
	}
	if err := join.ensureNameUnusedByAgent(t.Context(), karmada); err != nil {
		t.Errorf("the reservation of this join is an agent: %v", err)
	}
	// The reservation of an interrupted join is used again.
	release, err := join.reserveName(t.Context(), karmada)
	if err != nil {
		t.Fatal(err)
	}
	if err := release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := karmada.API.Get(t.Context(), client.ObjectKeyFromObject(role), role); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the reservation remains: %v", err)
	}
}

// Such an agent could read the cluster's credentials.
func TestJoinRejectsNamesOfAgents(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName("east"), Annotations: map[string]string{clusterv1alpha1.AgentRequestAnnotation: "1"}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: agent.RoleName("east") + "-work"}}
	join := Join{Name: "east", ClusterNamespace: "ns"}
	for name, object := range map[string]client.Object{"the role of an agent": role, "a role binding that is left over": binding} {
		t.Run(name, func(t *testing.T) {
			karmada := clusterclienttest.NewClient(t, "", object)
			if err := join.ensureNameUnusedByAgent(t.Context(), karmada); err == nil || !strings.Contains(err.Error(), "belongs to an agent") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := join.reserveName(t.Context(), clusterclienttest.NewClient(t, "", role)); err == nil {
		t.Error("a name that an agent has was reserved")
	}
}

func TestJoinRejectsNamesOfSecretsOfOtherClusters(t *testing.T) {
	for name, isRejected := range map[string]bool{"east": false, "impersonator": true, "east-impersonator": true, "impersonator-east": false} {
		if err := (Join{Name: name}).ensureNameNotReserved(); (err != nil) != isRejected {
			t.Errorf("%s: %v", name, err)
		}
	}
}
