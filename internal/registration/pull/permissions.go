package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/enroll"
)

// permissionsTimeout is how long awaitPermissions waits until the control plane has granted the agent's
// permissions. A permission becomes effective only when it reaches the authorizer's cache.
const permissionsTimeout = 5 * time.Second

// requiredPermissions returns the permissions without which an agent cannot work, in the order in which
// the agent uses them.
func requiredPermissions(cluster, clusterNamespace string) []authorizationv1.ResourceAttributes {
	namespace := work.ExecutionNamespace(cluster)
	return []authorizationv1.ResourceAttributes{
		{Verb: "get", Group: clusterv1alpha1.GroupName, Resource: "clusters", Name: cluster},
		{Verb: "create", Group: clusterv1alpha1.GroupName, Resource: "clusters"},
		{Verb: "create", Group: corev1.GroupName, Resource: "secrets", Namespace: clusterNamespace},
		{Verb: "get", Group: corev1.GroupName, Resource: "secrets", Namespace: clusterNamespace, Name: cluster},
		{Verb: "update", Group: clusterv1alpha1.GroupName, Resource: "clusters", Subresource: "status", Name: cluster},
		{Verb: "create", Group: coordinationv1.GroupName, Resource: "leases", Namespace: clusterv1alpha1.NamespaceKarmadaCluster},
		{Verb: "update", Group: coordinationv1.GroupName, Resource: "leases", Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster},
		{Verb: "list", Group: workv1alpha1.GroupName, Resource: "works", Namespace: namespace},
		{Verb: "watch", Group: workv1alpha1.GroupName, Resource: "works", Namespace: namespace},
		{Verb: "update", Group: workv1alpha1.GroupName, Resource: "works", Subresource: "status", Namespace: namespace},
	}
}

// awaitPermissions waits until the agent has its permissions. If a permission is still missing at the
// time limit, awaitPermissions returns this permission, and otherwise an empty string. It returns an
// error if a Cluster with the name exists, or if the last complete attempt failed for another reason
// than a missing permission. Such failures are retried until the time limit.
func (a *agentIdentity) awaitPermissions(ctx context.Context) (missing string, err error) {
	waiting, cancel := context.WithTimeout(ctx, permissionsTimeout)
	defer cancel()
	pace := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: 500 * time.Millisecond, Steps: 20}
	missing = permissionToGetCluster
	var failure error
	err = pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		found, err := a.verifyPermissions(ctx)
		var registered *registration.RegisteredError
		switch {
		case errors.As(err, &registered):
			return false, err
		case ctx.Err() != nil:
			// The time limit interrupted this attempt, so use the previous attempt's result.
			return false, ctx.Err()
		}
		missing, failure = found, err
		return err == nil && missing == "", nil
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil:
		return "", nil
	case !wait.Interrupted(err):
		return "", err
	case failure != nil:
		return "", failure
	}
	return missing, nil
}

// permissionToGetCluster is the first permission that an agent needs, in the form that formatPermission
// returns.
const permissionToGetCluster = "get its Cluster"

// verifyPermissions returns a permission that the agent lacks, or an empty string if it lacks none. It
// returns a RegisteredError if a Cluster with the name exists.
func (a *agentIdentity) verifyPermissions(ctx context.Context) (missing string, err error) {
	if err := a.ensureNameUnused(ctx, a.karmada); err != nil {
		return permissionToGetCluster, ignoreForbidden(err)
	}
	return a.findMissingPermission(ctx)
}

// findMissingPermission returns a permission that the agent lacks, or an empty string if it lacks none.
// If the control plane does not serve access reviews to the agent, findMissingPermission lists Works
// instead, which verifies only this permission.
func (a *agentIdentity) findMissingPermission(ctx context.Context) (missing string, err error) {
	for _, each := range requiredPermissions(a.register.Name, a.register.ClusterNamespace) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &each}}
		err := a.karmada.API.Create(ctx, review)
		if apierrors.IsForbidden(err) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("reviewing in %s (%s) the access of %s: %w", a.karmada.Name, a.karmada.Host, agent.User(a.register.Name), err)
		}
		if !review.Status.Allowed {
			return formatPermission(each), nil
		}
	}
	works := &workv1alpha1.WorkList{}
	err = a.karmada.API.List(ctx, works, client.InNamespace(work.ExecutionNamespace(a.register.Name)), client.Limit(1))
	if apierrors.IsForbidden(err) {
		return "list works in namespace " + work.ExecutionNamespace(a.register.Name), nil
	}
	if err != nil {
		return "", fmt.Errorf("listing in %s (%s) the Works of %q: %w", a.karmada.Name, a.karmada.Host, a.register.Name, err)
	}
	return "", nil
}

// formatPermission formats a permission for messages, for example: update clusters/status "east".
func formatPermission(permission authorizationv1.ResourceAttributes) string {
	text := permission.Verb + " " + permission.Resource
	if permission.Subresource != "" {
		text += "/" + permission.Subresource
	}
	if permission.Name != "" {
		text += fmt.Sprintf(" %q", permission.Name)
	}
	if permission.Namespace != "" {
		text += " in namespace " + permission.Namespace
	}
	return text
}

// dryRunCluster creates the agent's Cluster as a dry run, so that a rejection is reported immediately,
// and not only in the log of an agent that does not become ready.
func (a *agentIdentity) dryRunCluster(ctx context.Context) error {
	r := a.register
	enrollment := enroll.Enrollment{
		Name: r.Name, ClusterNamespace: r.ClusterNamespace, Endpoint: registration.Endpoint(r.Member), ProxyURL: r.ProxyURL,
		Provider: r.Provider, Region: r.Region, Zones: r.Zones, ReportedAccounts: enroll.AllAccounts(), Member: r.Member,
	}
	wanted := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	enrollment.SetSpec(wanted, a.id)
	err := a.karmada.API.Create(ctx, wanted.DeepCopy(), client.DryRunAll)
	if reason := endpointRejection(err); reason != "" {
		// For example, the kubeconfig on one of the cluster's nodes may contain a loopback address.
		r.logf("[karmada-agent-start] warning: the control plane does not accept the address %s of the kubeconfig, so the agent reports the address that it uses in the cluster, and the cluster proxy may not work: %s",
			wanted.Spec.APIEndpoint, reason)
		a.omitEndpoint, wanted.Spec.APIEndpoint = true, ""
		err = a.karmada.API.Create(ctx, wanted, client.DryRunAll)
	}
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the control plane (%s) would not accept %q as a member: %w", a.karmada.Host, r.Name, err)
	}
	// Ignore other errors. If the agent gets the same error, it is reported later.
	return nil
}

// endpointRejection returns why the control plane rejected spec.apiEndpoint. It returns an empty string
// if err is not such a rejection.
func endpointRejection(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "spec.apiEndpoint" {
			return cause.Message
		}
	}
	return ""
}

// ignoreForbidden returns nil for a Forbidden error.
func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
