// Package push joins clusters in push mode and unjoins them.
//
// Join creates two service accounts for the control plane in the member: one for its own requests,
// and one to impersonate the callers of the cluster proxy. Join stores the tokens of these
// accounts in the control plane, and creates the Cluster that refers to the tokens. Unjoin deletes
// these objects.
//
// Invariants: a cluster has one name. The Cluster is created last, after a request with its
// credentials succeeded. A failed join deletes exactly the objects that it created in the control
// plane and in the member. Nothing is deleted in a cluster whose identity differs from that of the
// Cluster.
package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
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
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

// Join registers a cluster as a member in push mode.
type Join struct {
	// Name is the Cluster's name: a DNS label of at most 48 characters.
	Name string
	// ClusterNamespace is the namespace of the objects that join creates in the control plane and in the
	// member. The default is karmada-cluster.
	ClusterNamespace string
	// Provider, Region and Zones are the location of the cluster. Placements can select clusters by
	// these fields. All may be empty.
	Provider, Region string
	Zones            []string
	// MemberRole is the ClusterRole in the member that limits the control plane's permissions there. If it is
	// empty, the control plane may do everything.
	MemberRole string
	// DryRun runs all checks, writes nothing, and logs what would be created.
	DryRun bool
	// Karmada and Member are the client configurations for the control plane and of the cluster.
	Karmada, Member *rest.Config
	// MemberOrigin is the source of Member in messages. If it is empty, no message names the
	// source.
	MemberOrigin string
	// Log receives progress messages for the user. It may be nil.
	Log func(format string, args ...any)
	// TokenTimeout limits the wait for the member to issue a token. The default is 30 s.
	TokenTimeout time.Duration
}

// Run joins the cluster. It returns when a request with the new credentials has succeeded and the Cluster is
// stored, but does not wait until the Cluster is Ready. If the cluster is already registered under this name
// in push mode, Run replaces the stored credentials if the cluster rejects them, and returns a
// *RegisteredError if they work. Run also returns a *RegisteredError for any other registration of the name
// or the cluster. If Run fails or ctx ends, it deletes the objects that it created.
func (j Join) Run(ctx context.Context) (err error) {
	j.ClusterNamespace = cmp.Or(j.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	j.TokenTimeout = cmp.Or(j.TokenTimeout, enroll.DefaultTokenTimeout)
	karmada, member, err := j.openClusters()
	if err != nil {
		return err
	}
	wanted, err := j.verifyClusters(ctx, karmada, member)
	registered, isRepairable := asRepairable(err)
	if err != nil && !isRepairable {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rollBack(ctx, karmada, member))
		}
	}()
	if isRepairable {
		return j.repair(ctx, karmada, member, registered)
	}
	credentials, err := j.grantAccess(ctx, member)
	if err != nil {
		return err
	}
	release, err := j.reserveName(ctx, karmada)
	if err != nil {
		return err
	}
	if err := j.ensureNameUnusedByAgent(ctx, karmada); err != nil {
		return err
	}
	if err := j.register(ctx, karmada, wanted, credentials); err != nil {
		return err
	}
	if err := release(ctx); err != nil {
		j.logf("warning: %v", err)
	}
	return nil
}

// openClusters creates the clients of both clusters.
func (j Join) openClusters() (karmada, member *clusterclient.Client, err error) {
	if err := registration.ValidateName(j.Name); err != nil {
		return nil, nil, err
	}
	if karmada, err = clusterclient.NewKarmada(j.Karmada, j.Log); err != nil {
		return nil, nil, err
	}
	if member, err = clusterclient.NewMember(j.Name, j.Member, j.Log); err != nil {
		return nil, nil, err
	}
	karmada.DryRun, member.DryRun = j.DryRun, j.DryRun
	return karmada, member, nil
}

// verifyClusters reads both clusters and returns the Cluster to be created. It returns an error if
// the member must not join.
func (j Join) verifyClusters(ctx context.Context, karmada, member *clusterclient.Client) (*clusterv1alpha1.Cluster, error) {
	id, err := member.Identify(ctx, j.MemberOrigin)
	if err != nil {
		return nil, err
	}
	if err := member.ReadOwner(ctx, karmada); err != nil {
		return nil, err
	}
	if member.Owner == id {
		return nil, fmt.Errorf("the kubeconfig of %s leads to the control plane itself (%s): choose the context of the member", member.Name,
			member.Host)
	}
	registered, err := karmada.ListClusters(ctx)
	if err != nil {
		return nil, err
	}
	if err := registration.EnsureNotRegistered(registered, j.Name, id); err != nil {
		return nil, err
	}
	if err := errors.Join(j.ensureNameNotReserved(), j.ensureNameUnusedByAgent(ctx, karmada)); err != nil {
		return nil, err
	}
	accounts := j.newGrant(member, j.ClusterNamespace)
	if err := errors.Join(accounts.VerifyOwner(ctx), accounts.VerifyMemberRole(ctx)); err != nil {
		return nil, err
	}
	wanted := j.newCluster(id)
	if errs := domaincluster.Validate(wanted); len(errs) > 0 {
		return nil, fmt.Errorf("cluster %q would be invalid: %w", j.Name, errs.ToAggregate())
	}
	if isLoopback(wanted.Spec.APIEndpoint) && !isLoopback(karmada.Host) {
		j.logf("warning: %s is a loopback address; the control plane at %s would connect to its own machine instead of %s",
			wanted.Spec.APIEndpoint, karmada.Host, member.Name)
	}
	return wanted, nil
}

// ensureNameNotReserved returns an error if the cluster's credentials would be stored under the name of
// another cluster's Secret.
func (j Join) ensureNameNotReserved() error {
	reserved := strings.TrimPrefix(enroll.ImpersonatorSuffix, "-")
	if j.Name == reserved || strings.HasSuffix(j.Name, enroll.ImpersonatorSuffix) {
		return fmt.Errorf("cluster name %q: choose a name that is neither %q nor ends with %q, because Secrets and accounts of other clusters have such names", j.Name, reserved, enroll.ImpersonatorSuffix)
	}
	return nil
}

// reserveName reserves the cluster's name, so that no agent can get it before the Cluster exists: such an
// agent could read the cluster's credentials. The returned function releases the name.
func (j Join) reserveName(ctx context.Context, karmada *clusterclient.Client) (release func(context.Context) error, err error) {
	reservation := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name:        agent.RoleName(j.Name),
		Annotations: map[string]string{clusterv1alpha1.AgentRequestAnnotation: clusterv1alpha1.NameReservation},
	}}
	if j.DryRun {
		return func(context.Context) error { return nil }, nil
	}
	stored, err := karmada.Ensure(ctx, reservation, func(have client.Object) error {
		if have.GetAnnotations()[clusterv1alpha1.AgentRequestAnnotation] != clusterv1alpha1.NameReservation {
			return errors.New("it belongs to an agent")
		}
		return nil // a join that was interrupted left it
	})
	if apierrors.IsForbidden(err) {
		// A user who may not write roles may still join a cluster.
		return func(context.Context) error { return nil }, nil
	}
	return func(ctx context.Context) error { return karmada.Delete(ctx, stored) }, err
}

// ensureNameUnusedByAgent returns an error if an agent without a Cluster has permissions under this
// name, because this agent could read the credentials that join stores. If the roles have an owner,
// ensureNameUnusedByAgent waits until garbage collection deletes them.
func (j Join) ensureNameUnusedByAgent(ctx context.Context, karmada *clusterclient.Client) error {
	objects := []client.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(j.Name)}}}
	for _, binding := range agent.Bindings(j.Name, j.ClusterNamespace) {
		objects = append(objects, binding)
	}
	for _, object := range objects {
		have, err := karmada.Get(ctx, object)
		if apierrors.IsForbidden(err) {
			// A user who has no permission to read roles may still join a cluster.
			continue
		}
		if err != nil {
			return err
		}
		if role, ok := have.(*rbacv1.ClusterRole); ok && role.DeletionTimestamp == nil && !agent.IsRegistered(role) {
			continue // a reservation
		}
		if have == nil || len(have.GetOwnerReferences()) > 0 && karmada.AwaitTerminatingObject(ctx, have) == nil {
			continue
		}
		return fmt.Errorf("cluster name %q belongs to an agent, which could read the credentials of this cluster: %s exists in %s, so a cluster is or was registered under that name; choose another name, or delete this object if it is no longer in use",
			j.Name, karmada.Describe(have), karmada.Name)
	}
	return nil
}

// grantAccess creates the control plane's accounts in the member and returns their tokens.
func (j Join) grantAccess(ctx context.Context, member *clusterclient.Client) (enroll.Credentials, error) {
	return j.newGrant(member, j.ClusterNamespace).IssueTokens(ctx, enroll.AllAccounts())
}

// newGrant returns the Grant for the control plane's accounts in the given namespace of the member.
func (j Join) newGrant(member *clusterclient.Client, namespace string) enroll.Grant {
	return enroll.Grant{Cluster: j.Name, Namespace: namespace, Member: member, Config: j.Member, Timeout: j.TokenTimeout,
		MemberRole: j.MemberRole}
}

// keepExisting accepts an existing object unchanged.
func keepExisting(client.Object) error { return nil }

// register stores the credentials and the Cluster in the control plane.
func (j Join) register(ctx context.Context, karmada *clusterclient.Client, wanted *clusterv1alpha1.Cluster,
	credentials enroll.Credentials) error {
	if _, err := karmada.Ensure(ctx, registration.NewNamespace(j.ClusterNamespace), keepExisting); err != nil {
		return err
	}
	credentialsSecret, impersonatorSecret := j.newSecrets(credentials)
	for _, secret := range []*corev1.Secret{impersonatorSecret, credentialsSecret} {
		if _, err := karmada.Ensure(ctx, secret, func(have client.Object) error {
			if err := j.verifySecretOwner(ctx, karmada, have, wanted.Spec.ID); err != nil {
				return err
			}
			return enroll.AdoptSecret(have, secret, j.Name, "")
		}); err != nil {
			return err
		}
	}
	if err := j.awaitExecutionNamespace(ctx, karmada); err != nil {
		return err
	}
	stored, err := karmada.Ensure(ctx, wanted, func(have client.Object) error {
		return registration.EnsureNotRegistered([]clusterv1alpha1.Cluster{*have.(*clusterv1alpha1.Cluster)}, j.Name, wanted.Spec.ID)
	})
	if err != nil || j.DryRun {
		return err
	}
	if err := j.ensureStillUnique(ctx, karmada, wanted.Spec.ID); err != nil {
		return err
	}
	// A concurrent join of another cluster under the same name may have overwritten the Secrets.
	// The creation of the Cluster has now reserved the name, so write the Secrets again.
	registered, ok := stored.(*clusterv1alpha1.Cluster)
	if !ok {
		return fmt.Errorf("%s in %s is a %T", karmada.Describe(stored), karmada.Name, stored)
	}
	for _, secret := range []*corev1.Secret{impersonatorSecret, credentialsSecret} {
		if err := enroll.EnsureSecret(ctx, karmada, secret, registered); err != nil {
			return err
		}
	}
	return nil
}

// newSecrets returns the Secrets with the credentials, which no agent may write.
func (j Join) newSecrets(credentials enroll.Credentials) (credentialsSecret, impersonatorSecret *corev1.Secret) {
	credentialsSecret, impersonatorSecret = credentials.Secrets(j.Name, j.ClusterNamespace)
	for _, secret := range []*corev1.Secret{impersonatorSecret, credentialsSecret} {
		metav1.SetMetaDataLabel(&secret.ObjectMeta, clusterv1alpha1.PushCredentialsLabel, "true")
	}
	return credentialsSecret, impersonatorSecret
}

// ensureStillUnique returns an error if the cluster was registered under another name since join verified
// this. Two replicas of the API server may accept two Clusters with the same ID. Each join lists the
// Clusters after it created its own, so at least one of the two finds the other Cluster and rolls back.
func (j Join) ensureStillUnique(ctx context.Context, karmada *clusterclient.Client, id string) error {
	registered, err := karmada.ListClusters(ctx)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(registered, func(other clusterv1alpha1.Cluster) bool { return other.Name == j.Name })
	return registration.EnsureNotRegistered(others, j.Name, id)
}

// verifySecretOwner returns an error if an existing Cluster of this name owns the Secret. A
// Secret of a deleted Cluster may be reused.
func (j Join) verifySecretOwner(ctx context.Context, karmada *clusterclient.Client, secret client.Object, id string) error {
	hasOwner := slices.ContainsFunc(secret.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == clusterv1alpha1.ResourceKindCluster && owner.Name == j.Name
	})
	if !hasOwner {
		return nil
	}
	have, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: j.Name}})
	if existing, ok := have.(*clusterv1alpha1.Cluster); ok {
		return registration.EnsureNotRegistered([]clusterv1alpha1.Cluster{*existing}, j.Name, id)
	}
	return err
}

// awaitExecutionNamespace waits until the execution namespace of a deleted Cluster of this name is gone,
// because no Work can be created in a terminating namespace.
func (j Join) awaitExecutionNamespace(ctx context.Context, karmada *clusterclient.Client) error {
	// A user who has no permission to read the namespace may still join a cluster.
	namespace, err := karmada.Get(ctx, registration.NewExecutionNamespace(j.Name))
	if err == nil && namespace != nil && !namespace.GetDeletionTimestamp().IsZero() && !j.DryRun {
		return karmada.AwaitTerminatingObject(ctx, namespace)
	}
	return nil
}

// rollBack deletes the created objects in the control plane and in the member. It starts with the
// control plane, so that the control plane does not use deleted accounts.
func rollBack(ctx context.Context, karmada, member *clusterclient.Client) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clusterclient.RollbackTimeout)
	defer cancel()
	var errs []error
	for _, s := range []*clusterclient.Client{karmada, member} {
		if err := s.RollBack(ctx); err != nil {
			errs = append(errs, fmt.Errorf("cleaning up: %w", err))
		}
	}
	return errors.Join(errs...)
}

// isLoopback reports whether the address is a loopback address.
func isLoopback(address string) bool {
	target, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(target.Hostname())
	return target.Hostname() == "localhost" || (ip != nil && ip.IsLoopback())
}

func (j Join) logf(format string, args ...any) { registration.Log(j.Log).Printf(format, args...) }

// newCluster returns the Cluster to be created for the member with the identity.
func (j Join) newCluster(id string) *clusterv1alpha1.Cluster {
	var annotations map[string]string
	if j.MemberRole != "" {
		annotations = map[string]string{clusterv1alpha1.MemberRoleAnnotation: j.MemberRole}
	}
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Annotations: annotations},
		Spec: clusterv1alpha1.ClusterSpec{
			ID:          id,
			SyncMode:    clusterv1alpha1.Push,
			APIEndpoint: registration.Endpoint(j.Member),
			SecretRef:   &clusterv1alpha1.LocalSecretReference{Namespace: j.ClusterNamespace, Name: j.Name},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: j.ClusterNamespace,
				Name: j.Name + enroll.ImpersonatorSuffix},
			InsecureSkipTLSVerification: j.Member.Insecure,
			ProxyURL:                    registration.ProxyURL(j.Member),
			Provider:                    j.Provider,
			Region:                      j.Region,
			Zones:                       j.Zones,
		},
	}
}
