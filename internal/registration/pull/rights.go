package pull

import (
	"context"
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
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/enroll"
	"karmada.io/karmada/internal/registration/grant"
)

// rightsTimeout is how long a control plane that grants the rights of an agent by
// itself may take to let it use them: authorizers learn of them through a cache.
const rightsTimeout = 5 * time.Second

// essential are the rights without which an agent does nothing, in the order in which
// it needs them.
func essential(cluster, clusterNamespace string) []authorizationv1.ResourceAttributes {
	space := agent.ExecutionNamespace(cluster)
	return []authorizationv1.ResourceAttributes{
		{Verb: "get", Group: clusterv1alpha1.GroupName, Resource: "clusters", Name: cluster},
		{Verb: "create", Group: clusterv1alpha1.GroupName, Resource: "clusters"},
		{Verb: "create", Group: corev1.GroupName, Resource: "secrets", Namespace: clusterNamespace},
		{Verb: "get", Group: corev1.GroupName, Resource: "secrets", Namespace: clusterNamespace, Name: cluster},
		{Verb: "update", Group: clusterv1alpha1.GroupName, Resource: "clusters", Subresource: "status", Name: cluster},
		{Verb: "create", Group: coordinationv1.GroupName, Resource: "leases", Namespace: clusterv1alpha1.NamespaceKarmadaCluster},
		{Verb: "update", Group: coordinationv1.GroupName, Resource: "leases", Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: cluster},
		{Verb: "list", Group: workv1alpha1.GroupName, Resource: "works", Namespace: space},
		{Verb: "watch", Group: workv1alpha1.GroupName, Resource: "works", Namespace: space},
		{Verb: "update", Group: workv1alpha1.GroupName, Resource: "works", Subresource: "status", Namespace: space},
	}
}

// missingRight says what the agent may not do that it has to, which it may have to wait
// for a moment; nothing if it may do all. It is an error if its Cluster exists.
func (i *identity) missingRight(ctx context.Context) (missing string, err error) {
	waiting, cancel := context.WithTimeout(ctx, rightsTimeout)
	defer cancel()
	pace := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: 500 * time.Millisecond, Steps: 20}
	err = pace.DelayFunc().Until(waiting, true, false, func(ctx context.Context) (bool, error) {
		missing = "see its Cluster"
		if err := i.nameIsFree(ctx, i.karmada); err != nil {
			return false, ignoreForbidden(err)
		}
		var err error
		missing, err = i.askRights(ctx)
		return err == nil && missing == "", err
	})
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if wait.Interrupted(err) {
		return missing, nil
	}
	return "", err
}

// askRights says what the agent may not do. A control plane that does not tell is asked
// for what the agent reads all the time.
func (i *identity) askRights(ctx context.Context) (missing string, err error) {
	for _, each := range essential(i.register.Name, i.register.ClusterNamespace) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &each}}
		err := i.karmada.API.Create(ctx, review)
		if apierrors.IsForbidden(err) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("asking %s (%s) what %s may do: %w", i.karmada.Name, i.karmada.Host, agent.User(i.register.Name), err)
		}
		if !review.Status.Allowed {
			return spelled(each), nil
		}
	}
	works := &workv1alpha1.WorkList{}
	err = i.karmada.API.List(ctx, works, client.InNamespace(agent.ExecutionNamespace(i.register.Name)), client.Limit(1))
	if apierrors.IsForbidden(err) {
		return "list works in namespace " + agent.ExecutionNamespace(i.register.Name), nil
	}
	return "", err
}

// spelled says a right in words: update clusters/status "east".
func spelled(right authorizationv1.ResourceAttributes) string {
	text := right.Verb + " " + right.Resource
	if right.Subresource != "" {
		text += "/" + right.Subresource
	}
	if right.Name != "" {
		text += fmt.Sprintf(" %q", right.Name)
	}
	if right.Namespace != "" {
		text += " in namespace " + right.Namespace
	}
	return text
}

// rehearse lets the control plane judge the Cluster that the agent will make, without
// making it: what it would refuse shows now, and not in the log of an agent that does
// not get ready.
func (i *identity) rehearse(ctx context.Context) error {
	r := i.register
	said := enroll.Agent{
		Name: r.Name, ClusterNamespace: r.ClusterNamespace, Endpoint: registration.Endpoint(r.Member), ProxyURL: r.ProxyURL,
		Provider: r.Provider, Region: r.Region, Zones: r.Zones, Report: grant.ReportAll(), Member: r.Member,
	}
	wanted := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	said.Describe(wanted, i.id)
	err := i.karmada.API.Create(ctx, wanted, client.DryRunAll)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the control plane (%s) would not take %q as a member: %w", i.karmada.Host, r.Name, err)
	}
	// What else there may be shows again when the agent makes it, if it is there then.
	return nil
}

func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
