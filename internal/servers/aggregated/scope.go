package aggregated

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
)

// agentScopes returns a function that reads the scope of the agent of a cluster from its ClusterRole.
// The agent can delete the ClusterRole shortly before it creates its Cluster, so the function then reads
// the scope from the execution namespace, which agents cannot change.
func agentScopes(karmada kubernetes.Interface) func(ctx context.Context, cluster string) (agent.Scope, error) {
	return func(ctx context.Context, cluster string) (agent.Scope, error) {
		if karmada == nil {
			return agent.Scope{}, nil // there is no Karmada API server, and agents cannot register
		}
		role, err := karmada.RbacV1().ClusterRoles().Get(ctx, agent.RoleName(cluster), metav1.GetOptions{})
		if err == nil {
			return agent.ParseScope(role.Annotations[clusterv1alpha1.RegistrationScopeAnnotation])
		}
		if !apierrors.IsNotFound(err) {
			return agent.Scope{}, fmt.Errorf("reading the ClusterRole of the agent of cluster %q: %w", cluster, err)
		}
		namespace, err := karmada.CoreV1().Namespaces().Get(ctx, work.ExecutionNamespace(cluster), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return agent.Scope{}, nil
		}
		if err != nil {
			return agent.Scope{}, fmt.Errorf("reading the execution namespace of cluster %q: %w", cluster, err)
		}
		return agent.ParseScope(namespace.Annotations[clusterv1alpha1.RegistrationScopeAnnotation])
	}
}
