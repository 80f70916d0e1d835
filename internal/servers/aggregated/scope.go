package aggregated

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// newScopeReader returns a function that reads the scope of a cluster's agent from the agent's
// ClusterRole. The function returns agent.ErrNotRegistered if the registration of the agent ended after
// its request was authorized. This can take any time, because a request is authorized before its body is
// read, and the client can delay the body.
func newScopeReader(karmada kubernetes.Interface) func(ctx context.Context, cluster string) (agent.Scope, error) {
	return func(ctx context.Context, cluster string) (agent.Scope, error) {
		if karmada == nil {
			return agent.Scope{}, nil // there is no Karmada API server, and agents cannot register
		}
		role, err := karmada.RbacV1().ClusterRoles().Get(ctx, agent.RoleName(cluster), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return agent.Scope{}, requireCreatePermission(ctx, karmada, cluster)
		case err != nil:
			return agent.Scope{}, fmt.Errorf("reading the ClusterRole of the agent of cluster %q: %w", cluster, err)
		case !agent.IsRegistered(role) || isRequestOlderThan(ctx, role):
			return agent.Scope{}, agent.ErrNotRegistered
		}
		return agent.ParseScope(role.Annotations[clusterv1alpha1.RegistrationScopeAnnotation])
	}
}

// isRequestOlderThan reports whether the request is older than the object.
func isRequestOlderThan(ctx context.Context, object metav1.Object) bool {
	received, known := request.ReceivedTimestampFrom(ctx)
	return known && received.Before(object.GetCreationTimestamp().Time)
}

// requireCreatePermission returns ErrNotRegistered if the user who sent the request is not allowed to
// create Clusters. It is for agents that get their permissions from other roles. A permission from the
// deleted ClusterRole of the agent does not count: the API server authorizes requests from a cache, which
// may still contain that ClusterRole. The reason of the review names the role that allows the request.
func requireCreatePermission(ctx context.Context, karmada kubernetes.Interface, cluster string) error {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return agent.ErrNotRegistered
	}
	review, err := karmada.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.GetName(), Groups: user.GetGroups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: clusterv1alpha1.GroupName, Resource: "clusters"},
		}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("reviewing whether user %s may create Clusters: %w", user.GetName(), err)
	case !review.Status.Allowed || strings.Contains(review.Status.Reason, "of ClusterRole "+strconv.Quote(agent.RoleName(cluster))):
		return agent.ErrNotRegistered
	}
	return nil
}
