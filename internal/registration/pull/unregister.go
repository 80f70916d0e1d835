package pull

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

// Unregister removes a cluster in pull mode from the control plane.
type Unregister struct {
	// Name is the Cluster's name.
	Name string
	// Namespace is the agent's namespace in the member. The default is karmada-system. AgentName is the
	// name of the agent's Deployment. The default is karmada-agent.
	Namespace, AgentName string
	// ClusterNamespace is the control plane's namespace for the cluster's Secrets. The default is the
	// value of the agent's flag, or karmada-cluster.
	ClusterNamespace string
	// Wait limits the time for the removal from the control plane, and separately the time for the
	// removal from the member. The default is 60 s.
	Wait time.Duration
	// Force makes Run continue if one of the two clusters cannot be reached. It also removes the
	// finalizers that no controller removes in time. The propagated objects then stay in the member.
	Force bool
	// DryRun performs all checks and logs what would be deleted, but writes nothing.
	DryRun bool
	// Karmada is the client configuration for the control plane. Nil selects the agent's kubeconfig,
	// with the context that the agent uses.
	Karmada *rest.Config
	// Member is the client configuration for the cluster.
	Member *rest.Config
	// MemberOrigin describes in messages where Member was read from. If it is empty, messages do not
	// describe this.
	MemberOrigin string
	// Log receives progress messages for the user. It may be nil.
	Log func(format string, args ...any)
}

// Run deletes the propagated objects, then the Cluster, and then the objects that register
// created in the member.
func (u Unregister) Run(ctx context.Context) error {
	u.Namespace = cmp.Or(u.Namespace, clusterv1alpha1.NamespaceKarmadaSystem)
	u.AgentName = cmp.Or(u.AgentName, AgentName)
	u.Wait = cmp.Or(u.Wait, registration.DefaultWait)
	member, err := clusterclient.NewMember(u.Name, u.Member, u.Log)
	if err != nil {
		return err
	}
	run := &unregistration{Unregister: u, member: member}
	run.memberID, err = run.openMember(ctx)
	if err != nil {
		return err
	}
	if err := run.openKarmada(ctx); err != nil {
		return err
	}
	if err := run.findCluster(ctx); err != nil {
		return err
	}
	if err := run.readOwner(ctx); err != nil {
		return err
	}
	if u.DryRun {
		return run.logPlan(ctx)
	}
	if err := run.removeFromKarmada(ctx); err != nil {
		return err
	}
	return run.cleanUpMember(ctx)
}

// unregistration is one run of Unregister.
type unregistration struct {
	Unregister
	member *clusterclient.Client
	// memberID is the member's identity. It is empty if the member cannot be reached.
	memberID string
	// karmada is the client for the control plane. It is nil if the control plane cannot be reached.
	karmada *clusterclient.Client
	// usesAgentCredentials is true if karmada uses the agent's credentials.
	usesAgentCredentials bool
	// cluster is the Cluster, or nil if it does not exist.
	cluster *clusterv1alpha1.Cluster
	// karmadaManagesPermissions is true if the control plane itself revokes the agent's permissions.
	karmadaManagesPermissions bool
}

// openMember connects to the member and reads its identity.
func (u *unregistration) openMember(ctx context.Context) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	id, err = u.member.Identify(ctx, u.MemberOrigin)
	if err != nil && u.Force && u.Karmada != nil {
		u.logf("warning: %s will not be cleaned up: %v", u.member.Name, err)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%w\nTo remove a member that no longer exists, use --force and set the kubeconfig of the control plane with --karmada-config", err)
	}
	return id, nil
}

// findCluster reads the Cluster and verifies that it is this member's Cluster.
func (u *unregistration) findCluster(ctx context.Context) error {
	if u.karmada == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	object, err := u.karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: u.Name}})
	// A user who may not read the Cluster has set the wrong kubeconfig. If an agent may not read the
	// Cluster, the Cluster may have been deleted together with the agent's permissions.
	isDenied := apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
	if err != nil && u.Force && (u.usesAgentCredentials || !isDenied) {
		u.logf("warning: the control plane will not be cleaned up: %v", err)
		u.karmada = nil
		return nil
	}
	if err != nil {
		hint := ""
		if u.usesAgentCredentials && isDenied {
			hint = " An agent loses its permissions with its Cluster, so the Cluster was probably deleted."
		}
		return fmt.Errorf("%w\nNothing was changed.%s Use --force to remove the agent from %s anyway", err, hint, u.member.Name)
	}
	found, ok := object.(*clusterv1alpha1.Cluster)
	switch {
	case !ok && u.Force:
		u.logf("there is no Cluster %q in %s: deleting the remaining objects", u.Name, u.karmada.Name)
		return nil
	case !ok:
		return fmt.Errorf("there is no Cluster %q in %s (%s); use --force to delete the remaining objects of its agent in %s", u.Name,
			u.karmada.Name, u.karmada.Host, u.member.Name)
	case found.Spec.SyncMode == clusterv1alpha1.Push:
		return fmt.Errorf("cluster %q is in Push mode: use unjoin", u.Name)
	}
	if u.memberID != "" {
		if err := registration.VerifyMemberIdentity(u.member.Name, u.member.Host, u.memberID, found); err != nil {
			return err
		}
	}
	// Check this before any deletion, because with Force the member would lose its agent although the
	// Cluster stays.
	if err := admission.CheckDeletionProtection(found); err != nil {
		return fmt.Errorf("cluster %q: %w", u.Name, err)
	}
	u.cluster = found
	return nil
}

// removeFromKarmada deletes the Cluster with its Works, and the agent's permissions.
func (u *unregistration) removeFromKarmada(ctx context.Context) error {
	if u.karmada == nil {
		u.logRemainingObjects()
		return nil
	}
	u.karmadaManagesPermissions = u.hasManagedPermissions(ctx)
	if u.cluster != nil {
		if err := u.removeCluster(ctx); err != nil {
			return u.continueWithMember(ctx, err)
		}
	}
	return u.removePermissions(ctx)
}

// continueWithMember returns nil if Force is set and the control plane rejected the agent's
// credentials. The caller then still cleans up the member, because the user may not be able to get
// other credentials.
func (u *unregistration) continueWithMember(ctx context.Context, err error) error {
	if !u.Force || !u.usesAgentCredentials || ctx.Err() != nil {
		return err
	}
	u.logf("warning: the control plane was not cleaned up: %v", err)
	u.karmada = nil
	u.logRemainingObjects()
	return nil
}

// removeCluster deletes the Cluster before the Works, because bindings create new Works as long as the
// Cluster exists. The Works are deleted together with the Cluster.
func (u *unregistration) removeCluster(ctx context.Context) error {
	err := u.karmada.DeleteCluster(ctx, clusterclient.Removal{Cluster: u.cluster, Wait: u.Wait, DeniedMeansGone: u.usesAgentCredentials,
		ExtraBlockers: u.agentBlockers})
	var blocked *clusterclient.BlockedRemovalError
	if !u.Force || !errors.As(err, &blocked) {
		return err
	}
	u.karmada.LogForcedRemoval(blocked)
	return u.forceRemoval(ctx)
}

// agentBlockers returns a line about the agent's Deployment if Works remain and not all of the agent's
// replicas are available, because only the agent deletes these Works' objects in the member.
func (u *unregistration) agentBlockers(ctx context.Context, works int) []string {
	if works == 0 || u.memberID == "" {
		return nil
	}
	have, err := u.member.Get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.AgentName}})
	deployment, ok := have.(*appsv1.Deployment)
	if err != nil || !ok || deployment.Status.AvailableReplicas >= desiredReplicas(deployment) && desiredReplicas(deployment) > 0 {
		return nil
	}
	line := fmt.Sprintf("%s in %s, which deletes their objects: %s", u.member.Describe(deployment), u.member.Name, formatProgress(deployment))
	if failure := replicaFailure(deployment); failure != "" {
		line += ", " + failure
	}
	return []string{line}
}

// awaitClusterGone waits until the Cluster no longer exists. With the agent's credentials, a denied
// request also means that the Cluster no longer exists, because the agent loses its permissions
// together with the Cluster.
func (u *unregistration) awaitClusterGone(ctx context.Context) error {
	err := u.karmada.AwaitGone(ctx, u.cluster)
	if u.usesAgentCredentials && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		return nil
	}
	return err
}

// forceRemoval deletes the Works and the Cluster and removes their finalizers.
func (u *unregistration) forceRemoval(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clusterclient.RollbackTimeout)
	defer cancel()
	if err := u.karmada.Delete(ctx, u.cluster); err != nil {
		return err
	}
	if !u.usesAgentCredentials {
		return u.karmada.ForceDeleteCluster(ctx, u.cluster)
	}
	// The agent may not delete its execution namespace. The control plane deletes the namespace later.
	works := &workv1alpha1.WorkList{}
	if err := u.karmada.API.List(ctx, works, client.InNamespace(work.ExecutionNamespace(u.Name))); err != nil {
		return fmt.Errorf("listing the Works of cluster %q: %w", u.Name, err)
	}
	for i := range works.Items {
		if err := u.karmada.RemoveFinalizers(ctx, &works.Items[i]); err != nil {
			return err
		}
	}
	return u.awaitClusterGone(ctx)
}

// hasManagedPermissions reports whether the control plane granted the agent's permissions. If it did,
// it also revokes them.
func (u *unregistration) hasManagedPermissions(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	have, err := u.karmada.Get(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(u.Name)}})
	return err == nil && have != nil && have.GetLabels()[clusterv1alpha1.AgentLabel] == u.Name
}

// removePermissions deletes the agent's permissions. With the agent's credentials, it cannot delete all
// of them.
func (u *unregistration) removePermissions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	switch {
	case u.usesAgentCredentials && !u.karmadaManagesPermissions:
		u.logRemainingObjects()
		return nil
	case u.usesAgentCredentials && u.cluster == nil:
		// Without a Cluster, no deletion of a Cluster deletes the permissions. Delete the agent's role,
		// which the agent may delete itself, because no other cluster can register under this name
		// while the role exists.
		return u.karmada.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: agent.RoleName(u.Name)}})
	case u.usesAgentCredentials:
		return nil
	}
	var errs []error
	for _, object := range agent.RBACObjects(u.Name, cmp.Or(u.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)) {
		have, err := u.karmada.Get(ctx, object)
		if err == nil && have != nil {
			err = u.karmada.Delete(ctx, have)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster %q is gone, but the permissions of its agent were not deleted: %w", u.Name, err)
	}
	return nil
}

// logRemainingObjects logs the objects that an administrator of the control plane must delete.
func (u *unregistration) logRemainingObjects() {
	if u.karmada == nil {
		u.logf("warning: these objects may remain in the control plane, and its administrator must delete them:")
		u.logf("  Cluster %s", u.Name)
	} else {
		u.logf("warning: these objects remain in the control plane, and its administrator must delete them:")
	}
	for _, object := range agent.RBACObjects(u.Name, cmp.Or(u.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)) {
		u.logf("  %s", u.member.Describe(object))
	}
}

// cleanUpMember deletes the objects that register created in the member. It deletes the agent first, so
// that the agent cannot create objects again.
func (u *unregistration) cleanUpMember(ctx context.Context) error {
	if u.memberID == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	var errs []error
	for _, object := range u.agentObjects() {
		switch object.(type) {
		case *rbacv1.ClusterRoleBinding:
			errs = append(errs, u.newRegister().deleteFromBinding(ctx, u.member))
		case *rbacv1.ClusterRole:
			// deleteFromBinding deletes the role together with the last subject.
		default:
			errs = append(errs, u.member.DeleteOwned(ctx, object))
		}
	}
	errs = append(errs, u.newRegister().revokeMemberRole(ctx, u.member))
	errs = append(errs, u.accounts().Run(ctx, u.member))
	if err := errors.Join(errs...); err != nil {
		if u.Force {
			u.logf("warning: %v", err)
			return nil
		}
		return fmt.Errorf("%s was not cleaned up entirely: %w", u.member.Name, err)
	}
	return nil
}

// accounts returns the cleanup for the control plane's accounts in the member.
func (u *unregistration) accounts() enroll.Cleanup {
	return enroll.Cleanup{Cluster: u.Name, Namespace: cmp.Or(u.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster), Log: u.Log}
}

// agentObjects returns the objects that register created in the member for the agent, in the order of
// their deletion.
func (u *unregistration) agentObjects() []client.Object {
	register := u.newRegister()
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: u.AgentName}},
		register.agentServiceAccount(), register.agentBinding(), register.agentRole(), register.kubeconfigSecret(nil),
	}
}

// newRegister returns a Register that contains only the fields that determine the agent's objects.
func (u *unregistration) newRegister() Register {
	return Register{Name: u.Name, Namespace: u.Namespace}
}

// logPlan logs what a run without DryRun would delete.
func (u *unregistration) logPlan(ctx context.Context) error {
	if u.karmada != nil && u.cluster != nil {
		u.logf("would delete %s with its Works in %s", u.karmada.Describe(u.cluster), u.karmada.Name)
	}
	if u.memberID == "" {
		return nil
	}
	for _, object := range u.agentObjects() {
		switch have, err := u.member.Get(ctx, object); {
		case err != nil:
			return err
		case have != nil:
			u.logf("would delete %s in %s", u.member.Describe(object), u.member.Name)
		}
	}
	u.member.DryRun = true
	return u.accounts().Run(ctx, u.member)
}

func (u Unregister) logf(format string, args ...any) { registration.Log(u.Log).Printf(format, args...) }

// flagValue returns the value of the container's argument --name=value, or an empty string if there is
// none.
func flagValue(container corev1.Container, name string) string {
	for _, argument := range append(append([]string(nil), container.Command...), container.Args...) {
		if value, ok := strings.CutPrefix(argument, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}
