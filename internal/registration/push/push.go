// Package push answers: how does a cluster become a member that the control plane
// pushes to, and how does it stop being one?
//
// Joining gives the control plane two service accounts in the member (one to act,
// one to impersonate the callers of the cluster proxy), stores their tokens in
// the control plane and creates the Cluster that points to them. Unjoining goes
// the same way back.
//
// Invariants: a cluster has one name. The Cluster is created last, after its
// credentials have proved to work. A join that does not end well deletes what it
// has created itself on both sides, and nothing else. Nothing is deleted in a
// cluster whose identity is not that of the Cluster being unjoined.
package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// Join registers a cluster as a member that the control plane pushes to.
type Join struct {
	// Name is the name of the Cluster: a DNS label of at most 48 characters.
	Name string
	// ClusterNamespace is the namespace, on both sides, of what is created.
	// Default karmada-cluster.
	ClusterNamespace string
	// Provider, Region and Zones are where the cluster is; placements refer to
	// them. All may be empty.
	Provider, Region string
	Zones            []string
	// MemberRole is the ClusterRole of the member that limits what the control plane
	// may do there. Empty lets it do everything.
	MemberRole string
	// DryRun checks everything, changes nothing on either side and logs what
	// would be created.
	DryRun bool
	// Karmada and Member lead to the control plane and to the cluster.
	Karmada, Member *rest.Config
	// MemberOrigin says where Member was read from, for messages. It may be empty.
	MemberOrigin string
	// Log receives what happens, for people. Nil means nobody listens.
	Log func(format string, args ...any)
	// TokenTimeout is how long the member may take to issue a token. Default 30 s.
	TokenTimeout time.Duration
}

// Run joins the cluster and returns when its credentials are known to work and
// the Cluster is stored; whether the Cluster is Ready is found out later. If the
// cluster is registered under the name already and refuses the stored credentials, Run
// replaces them. It returns a *RegisteredError if they work, or if the name or the
// cluster is taken. When it fails or ctx ends, what it has created is deleted again.
func (j Join) Run(ctx context.Context) (err error) {
	j.ClusterNamespace = cmp.Or(j.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	j.TokenTimeout = cmp.Or(j.TokenTimeout, grant.DefaultTokenTimeout)
	karmada, member, err := j.sides()
	if err != nil {
		return err
	}
	wanted, err := j.check(ctx, karmada, member)
	taken, mayRepair := repairable(err)
	if err != nil && !mayRepair {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, undo(ctx, karmada, member))
		}
	}()
	if mayRepair {
		return j.repair(ctx, karmada, member, taken)
	}
	credentials, err := j.grantAccess(ctx, member)
	if err != nil {
		return err
	}
	return j.register(ctx, karmada, wanted, credentials)
}

func (j Join) sides() (karmada, member *side.Side, err error) {
	if err := registration.ValidateName(j.Name); err != nil {
		return nil, nil, err
	}
	if karmada, err = side.Karmada(j.Karmada, j.Log); err != nil {
		return nil, nil, err
	}
	if member, err = side.Member(j.Name, j.Member, j.Log); err != nil {
		return nil, nil, err
	}
	karmada.DryRun, member.DryRun = j.DryRun, j.DryRun
	return karmada, member, nil
}

// check reads both sides and returns the Cluster to be created, or why it must
// not be.
func (j Join) check(ctx context.Context, karmada, member *side.Side) (*clusterv1alpha1.Cluster, error) {
	id, err := member.Identify(ctx, j.MemberOrigin)
	if err != nil {
		return nil, err
	}
	registered, err := karmada.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	if err := registration.RefuseDuplicate(registered, j.Name, id); err != nil {
		return nil, err
	}
	if err := j.nameIsNoAgents(ctx, karmada); err != nil {
		return nil, err
	}
	if err := j.grant(member, j.ClusterNamespace).CheckMemberRole(ctx); err != nil {
		return nil, err
	}
	// The identity of the control plane is asked for only to catch a mix-up, so
	// not being allowed to see it is no obstacle.
	if own, err := karmada.ID(ctx); err == nil && own == id {
		return nil, fmt.Errorf("the kubeconfig of %s leads to the control plane itself (%s): choose the context of the member", member.Name, member.Host)
	}
	wanted := j.cluster(id)
	if wrong := domaincluster.Validate(wanted); len(wrong) > 0 {
		return nil, fmt.Errorf("cluster %q would not be valid: %w", j.Name, wrong.ToAggregate())
	}
	if isLoopback(wanted.Spec.APIEndpoint) && !isLoopback(karmada.Host) {
		j.logf("warning: %s is an address of this machine only; the control plane at %s will look for %s on its own", wanted.Spec.APIEndpoint, karmada.Host, member.Name)
	}
	return wanted, nil
}

// nameIsNoAgents refuses the name of an agent that has rights and no Cluster: it could
// read the credentials that are stored here. The rights of one whose Cluster has just
// left are about to go.
func (j Join) nameIsNoAgents(ctx context.Context, karmada *side.Side) error {
	role := agent.RoleName(j.Name)
	for _, right := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: j.ClusterNamespace, Name: role + "-secret"}},
	} {
		have, err := karmada.Get(ctx, right)
		if apierrors.IsForbidden(err) {
			// Who may not see roles joins without.
			continue
		}
		if err != nil {
			return err
		}
		if have == nil || len(have.GetOwnerReferences()) > 0 && karmada.Outlive(ctx, have) == nil {
			continue
		}
		return fmt.Errorf("cluster name %q is that of an agent, which could read the credentials of this cluster: %s is in %s, so a cluster registers under that name or did so; choose another name, or if nobody needs it any more, delete it there",
			j.Name, karmada.Describe(have), karmada.Name)
	}
	return nil
}

// grantAccess makes the accounts of the control plane in the member and returns
// their tokens.
func (j Join) grantAccess(ctx context.Context, member *side.Side) (grant.Access, error) {
	return j.grant(member, j.ClusterNamespace).Issue(ctx, grant.ReportAll())
}

// grant is what the member lets the control plane do, with accounts in the namespace.
func (j Join) grant(member *side.Side, namespace string) grant.Grant {
	return grant.Grant{Cluster: j.Name, Namespace: namespace, Member: member, Config: j.Member, Timeout: j.TokenTimeout, MemberRole: j.MemberRole}
}

func asIs(client.Object) error { return nil }

// register stores the credentials and the Cluster in the control plane.
func (j Join) register(ctx context.Context, karmada *side.Side, wanted *clusterv1alpha1.Cluster, credentials grant.Access) error {
	if _, err := karmada.Ensure(ctx, registration.Namespace(j.ClusterNamespace), asIs); err != nil {
		return err
	}
	acting, impersonating := credentials.Secrets(j.Name, j.ClusterNamespace)
	for _, secret := range []*corev1.Secret{impersonating, acting} {
		if _, err := karmada.Ensure(ctx, secret, func(have client.Object) error {
			if err := j.ownerIsGone(ctx, karmada, have, wanted.Spec.ID); err != nil {
				return err
			}
			return grant.AdoptSecret(have, secret, j.Name, "")
		}); err != nil {
			return err
		}
	}
	if err := j.awaitSpace(ctx, karmada); err != nil {
		return err
	}
	stored, err := karmada.Ensure(ctx, wanted, func(have client.Object) error {
		return registration.RefuseDuplicate([]clusterv1alpha1.Cluster{*have.(*clusterv1alpha1.Cluster)}, j.Name, wanted.Spec.ID)
	})
	if err != nil || j.DryRun {
		return err
	}
	if err := j.stillOne(ctx, karmada, wanted.Spec.ID); err != nil {
		return err
	}
	// Who joins another cluster under the same name at the same time may have stored
	// its own credentials. The Cluster decides whose the name is, so they are written
	// again now that it is there.
	registered, ok := stored.(*clusterv1alpha1.Cluster)
	if !ok {
		return fmt.Errorf("%s in %s is a %T", karmada.Describe(stored), karmada.Name, stored)
	}
	for _, secret := range []*corev1.Secret{impersonating, acting} {
		if err := grant.Keep(ctx, karmada, secret, registered); err != nil {
			return err
		}
	}
	return nil
}

// stillOne refuses a cluster that somebody has registered under another name meanwhile,
// which two replicas of the API server may both accept. Both look after they have
// registered, so at least one of them sees the other and gives way.
func (j Join) stillOne(ctx context.Context, karmada *side.Side, id string) error {
	registered, err := karmada.Clusters(ctx)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(registered, func(other clusterv1alpha1.Cluster) bool { return other.Name == j.Name })
	return registration.RefuseDuplicate(others, j.Name, id)
}

// ownerIsGone refuses a Secret that belongs to a Cluster of the name which exists:
// somebody was faster. One that was left by a Cluster is to be had.
func (j Join) ownerIsGone(ctx context.Context, karmada *side.Side, secret client.Object, id string) error {
	owned := slices.ContainsFunc(secret.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.Name == j.Name
	})
	if !owned {
		return nil
	}
	have, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: j.Name}})
	if taken, ok := have.(*clusterv1alpha1.Cluster); ok {
		return registration.RefuseDuplicate([]clusterv1alpha1.Cluster{*taken}, j.Name, id)
	}
	return err
}

// awaitSpace waits until the execution namespace of a Cluster of this name that has
// just left is gone: until then the new one could get no Works.
func (j Join) awaitSpace(ctx context.Context, karmada *side.Side) error {
	// Who may not see the namespace joins without.
	space, err := karmada.Get(ctx, registration.ExecutionSpace(j.Name))
	if err == nil && space != nil && !space.GetDeletionTimestamp().IsZero() && !j.DryRun {
		return karmada.Outlive(ctx, space)
	}
	return nil
}

// undo cleans up on both sides, the control plane first, so that nobody uses
// credentials that are gone.
func undo(ctx context.Context, karmada, member *side.Side) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), side.UndoTimeout)
	defer cancel()
	var errs []error
	for _, s := range []*side.Side{karmada, member} {
		if err := s.Undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cleaning up: %w", err))
		}
	}
	return errors.Join(errs...)
}

func isLoopback(address string) bool {
	target, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(target.Hostname())
	return target.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}

func (j Join) logf(format string, args ...any) { registration.Log(j.Log).Printf(format, args...) }

// cluster is the Cluster to be created for the member with the given identity.
func (j Join) cluster(id string) *clusterv1alpha1.Cluster {
	var annotations map[string]string
	if j.MemberRole != "" {
		annotations = map[string]string{clusterv1alpha1.MemberRoleAnnotation: j.MemberRole}
	}
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Annotations: annotations},
		Spec: clusterv1alpha1.ClusterSpec{
			ID:                          id,
			SyncMode:                    clusterv1alpha1.Push,
			APIEndpoint:                 registration.Endpoint(j.Member),
			SecretRef:                   &clusterv1alpha1.LocalSecretReference{Namespace: j.ClusterNamespace, Name: j.Name},
			ImpersonatorSecretRef:       &clusterv1alpha1.LocalSecretReference{Namespace: j.ClusterNamespace, Name: j.Name + grant.ImpersonatorSuffix},
			InsecureSkipTLSVerification: j.Member.Insecure,
			ProxyURL:                    registration.ProxyOf(j.Member),
			Provider:                    j.Provider,
			Region:                      j.Region,
			Zones:                       j.Zones,
		},
	}
}
