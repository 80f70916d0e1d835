package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

// identifyTimeout limits the time for reading the member's identity.
const identifyTimeout = 15 * time.Second

// Unjoin removes a cluster in push mode from the control plane.
type Unjoin struct {
	// Name is the Cluster's name.
	Name string
	// ClusterNamespace is the namespace in the member that was given to join. The default is karmada-cluster.
	ClusterNamespace string
	// Wait limits the removal. The default is 60 s.
	Wait time.Duration
	// Force removes the finalizers if the Cluster still exists after Wait. Then the propagated
	// objects stay in the member. Force also ignores a failed cleanup of the member. If there is no
	// Cluster, Run with Force deletes the objects that an interrupted run left. If the control plane
	// does not respond, Run with Force and Member cleans up the member only.
	Force bool
	// DryRun runs all checks, writes nothing, and logs what would be deleted.
	DryRun bool
	// Karmada and Member are the client configurations for the control plane and of the cluster. Without
	// Member, nothing is deleted in the cluster. Without Karmada, only the member is cleaned up, which needs
	// Member.
	Karmada, Member *rest.Config
	// MemberOrigin is the source of Member in messages. If it is empty, no message names the
	// source.
	MemberOrigin string
	// Command is the command in messages, with the flags that select the control plane. The default is
	// "karmadactl unjoin".
	Command string
	// Log receives progress messages for the user. It may be nil.
	Log func(format string, args ...any)
}

// Run deletes the Cluster, waits until it is gone and then deletes the objects that join
// created in the member. Garbage collection deletes the Secrets in the control plane
// together with the Cluster.
func (u Unjoin) Run(ctx context.Context) error {
	u.ClusterNamespace = cmp.Or(u.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	u.Wait = cmp.Or(u.Wait, registration.DefaultWait)
	if u.Karmada == nil {
		return u.cleanUpMemberOnly(ctx)
	}
	karmada, err := clusterclient.NewKarmada(u.Karmada, u.Log)
	if err != nil {
		return err
	}
	found, err := u.findCluster(ctx, karmada)
	if u.canContinueWithoutCluster(ctx, err) {
		u.logf("warning: the control plane %s cleaned up: %v", u.tense("is not", "would not be"), err)
		return u.cleanUpMemberOnly(ctx)
	}
	if err != nil {
		return err
	}
	member, err := u.openMember(ctx, karmada, found)
	if err != nil {
		return err
	}
	return u.removeCluster(ctx, karmada, member, found)
}

// canContinueWithoutCluster reports whether the member is cleaned up although the control plane could not be
// read. A user without permissions has set the wrong kubeconfig.
func (u Unjoin) canContinueWithoutCluster(ctx context.Context, err error) bool {
	var failed *unreadableError
	return u.Force && u.Member != nil && errors.As(err, &failed) && ctx.Err() == nil && !apierrors.IsUnauthorized(err) &&
		!apierrors.IsForbidden(err)
}

// unreadableError means that the Cluster could not be read.
type unreadableError struct{ error }

func (u *unreadableError) Unwrap() error { return u.error }

// cleanUpMemberOnly deletes the objects that join created in the member, without the control plane. They
// belong to the control plane that they name, which cannot be verified.
func (u Unjoin) cleanUpMemberOnly(ctx context.Context) error {
	member, err := clusterclient.NewMember(u.Name, u.Member, u.Log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	if _, err := member.Identify(ctx, u.MemberOrigin); err != nil {
		return err
	}
	return u.deleteNamedObjects(ctx, member)
}

func (u Unjoin) deleteNamedObjects(ctx context.Context, member *clusterclient.Client) (err error) {
	if member.Owner, err = u.memberCleanup().ReadOwner(ctx, member); err != nil {
		return err
	}
	if member.Owner != "" {
		u.logf("the objects of cluster %q in %s belong to the control plane with ID %s", u.Name, member.Name, member.Owner)
	}
	u.logf("warning: the objects propagated to %s stay in it", member.Name)
	member.DryRun = u.DryRun
	return u.memberCleanup().Run(ctx, member)
}

// removeCluster deletes the Cluster if found is not nil, and cleans up the member if member is not
// nil.
func (u Unjoin) removeCluster(ctx context.Context, karmada, member *clusterclient.Client, found *clusterv1alpha1.Cluster) error {
	// The member is cleaned up last, because the control plane needs the credentials in the member
	// to delete the propagated objects.
	if err := u.removeFromKarmada(ctx, karmada, found); err != nil {
		return err
	}
	if member == nil {
		u.logRemainingObjects(karmada, found)
		return nil
	}
	// With Force, the first time limit may have expired, so the cleanup gets a new one.
	cleaning, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	member.DryRun = u.DryRun
	if err := u.memberCleanup().Run(cleaning, member); err != nil {
		if !u.Force {
			return err
		}
		u.logf("warning: %v", err)
	}
	return nil
}

// removeFromKarmada deletes the Cluster if found is not nil, and the credentials that no Cluster owns.
func (u Unjoin) removeFromKarmada(ctx context.Context, karmada *clusterclient.Client, found *clusterv1alpha1.Cluster) error {
	karmada.DryRun = u.DryRun
	switch {
	case found == nil:
	case u.DryRun:
		u.logf("would delete %s in %s", karmada.Describe(found), karmada.Name)
	default:
		if err := karmada.RemoveCluster(ctx, clusterclient.Removal{Cluster: found, Wait: u.Wait, Force: u.Force}); err != nil {
			return err
		}
	}
	return u.deleteOrphanedSecrets(ctx, karmada, found)
}

// findCluster returns the Cluster. If there is none, it returns nil with Force, and an error
// otherwise.
func (u Unjoin) findCluster(ctx context.Context, karmada *clusterclient.Client) (*clusterv1alpha1.Cluster, error) {
	object, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: u.Name}})
	if err != nil {
		return nil, &unreadableError{err}
	}
	found, ok := object.(*clusterv1alpha1.Cluster)
	switch {
	case !ok && u.Force:
		u.logf("there is no Cluster %q in %s: the remaining objects %s deleted", u.Name, karmada.Name, u.tense("are", "would be"))
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("there is no Cluster %q in %s (%s); use --force to delete the objects that an interrupted run left", u.Name,
			karmada.Name, karmada.Host)
	}
	if found.Spec.SyncMode == clusterv1alpha1.Pull {
		return nil, fmt.Errorf("cluster %q is in Pull mode: use unregister", u.Name)
	}
	if err := admission.CheckDeletionProtection(found); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", u.Name, err)
	}
	return found, nil
}

// openMember returns the client for the member, or nil if nothing can be deleted in the member. It verifies
// the member's identity before anything is deleted in the control plane or in the member.
func (u Unjoin) openMember(ctx context.Context, karmada *clusterclient.Client,
	found *clusterv1alpha1.Cluster) (*clusterclient.Client, error) {
	if u.Member == nil {
		return nil, nil
	}
	member, err := clusterclient.NewMember(u.Name, u.Member, u.Log)
	if err != nil {
		return nil, err
	}
	identifying, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	actual, err := member.Identify(identifying, u.MemberOrigin)
	switch {
	case err != nil && u.Force && ctx.Err() == nil:
		u.logf("warning: %s %s not be cleaned up: %v", member.Name, u.tense("will", "would"), err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w\nTo unjoin a cluster that no longer exists, leave out its kubeconfig, or repeat with --force", err)
	case found == nil:
		err = u.ensureNotRegistered(ctx, karmada, member, actual)
	default:
		err = registration.VerifyMemberIdentity(member.Name, member.Host, actual, found)
	}
	if err != nil {
		return nil, err
	}
	return member, member.ReadOwner(ctx, karmada)
}

// ensureNotRegistered returns an error if the member is registered under another name. Unjoin calls
// it if there is no Cluster whose identity can be compared with the member.
func (u Unjoin) ensureNotRegistered(ctx context.Context, karmada, member *clusterclient.Client, id string) error {
	registered, err := karmada.ListClusters(ctx)
	if err != nil {
		return err
	}
	for _, other := range registered {
		if other.Spec.ID == id {
			return fmt.Errorf("the kubeconfig given for %s leads to Cluster %q: %s has its ID %s; choose the right context", member.Name, other.Name,
				member.Host, id)
		}
	}
	return nil
}

// deleteOrphanedSecrets deletes the credentials in the control plane that no Cluster owns. A join
// leaves such Secrets if it is interrupted before it creates the Cluster.
func (u Unjoin) deleteOrphanedSecrets(ctx context.Context, karmada *clusterclient.Client, deleted *clusterv1alpha1.Cluster) error {
	namespace := u.ClusterNamespace
	if deleted != nil && deleted.Spec.SecretRef != nil {
		namespace = deleted.Spec.SecretRef.Namespace
	}
	credentials, impersonator := enroll.Credentials{}.Secrets(u.Name, namespace)
	var errs []error
	for _, secret := range []client.Object{credentials, impersonator} {
		have, err := karmada.Get(ctx, secret)
		if err == nil && have != nil && isOrphanedSecret(have) {
			err = karmada.Delete(ctx, have)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if apierrors.IsForbidden(err) {
		// Most Secrets are deleted together with their Cluster, so permission to list Secrets is
		// optional.
		u.logf("warning: the search for remaining credentials of cluster %q in %s failed: %v", u.Name, karmada.Name, err)
		return nil
	}
	return err
}

// isOrphanedSecret reports whether join created the Secret and no Cluster owns it.
func isOrphanedSecret(secret client.Object) bool {
	return len(secret.GetOwnerReferences()) == 0 &&
		secret.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue
}

// logRemainingObjects logs the objects that stay in a member that is not cleaned up, and logs the
// command that deletes these objects.
func (u Unjoin) logRemainingObjects(karmada *clusterclient.Client, found *clusterv1alpha1.Cluster) {
	cleanup := u.memberCleanup()
	var names []string
	for _, object := range append(cleanup.Objects(), cleanup.SharedObjects()...) {
		// Only a Cluster with this annotation has a binding of the member role.
		isLimited := found == nil || found.Annotations[clusterv1alpha1.MemberRoleAnnotation] != ""
		if isLimited || object.GetName() != enroll.NewMemberRoleBinding(u.Name, "", "").Name {
			names = append(names, karmada.Describe(object))
		}
	}
	u.logf("warning: cluster %q %s cleaned up: the objects that join created there %s, and the tokens of its accounts %[3]s valid: %[4]s. To delete them, run:\n  %[5]s",
		u.Name, u.tense("is not", "would not be"), u.tense("stay", "would stay"), strings.Join(names, ", "), u.cleanupCommand())
}

// cleanupCommand returns the command that deletes what this run leaves in the member.
func (u Unjoin) cleanupCommand() string {
	words := []string{cmp.Or(u.Command, "karmadactl unjoin"), u.Name, "--force", "--cluster-kubeconfig=MEMBER_KUBECONFIG"}
	if u.ClusterNamespace != clusterv1alpha1.NamespaceKarmadaCluster {
		words = append(words, "--cluster-namespace="+u.ClusterNamespace)
	}
	return strings.Join(words, " ")
}

// tense returns the first text, or the second one in a dry run.
func (u Unjoin) tense(actual, dryRun string) string {
	if u.DryRun {
		return dryRun
	}
	return actual
}

func (u Unjoin) logf(format string, args ...any) { registration.Log(u.Log).Printf(format, args...) }

// memberCleanup returns the Cleanup for the objects that join created in the member.
func (u Unjoin) memberCleanup() enroll.Cleanup {
	return enroll.Cleanup{Cluster: u.Name, Namespace: u.ClusterNamespace, Log: u.Log}
}
