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
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// identifyTimeout is how long a member may take to say which cluster it is.
const identifyTimeout = 15 * time.Second

// Unjoin ends the membership of a cluster that the control plane pushes to.
type Unjoin struct {
	// Name is the name of the Cluster.
	Name string
	// ClusterNamespace is the namespace in the member given when it was joined.
	// Default karmada-cluster.
	ClusterNamespace string
	// Wait is how long the removal may take. Default 60 s.
	Wait time.Duration
	// Force takes the finalizers off when the Cluster is not gone by then, which
	// leaves in the member what was propagated to it, and lets a failing clean-up
	// of the member pass. Where there is no Cluster, it cleans up what a run that was
	// interrupted has left.
	Force bool
	// DryRun checks everything, changes nothing and logs what would be deleted.
	DryRun bool
	// Karmada leads to the control plane, Member to the cluster. Without Member
	// the cluster is left as it is.
	Karmada, Member *rest.Config
	// MemberOrigin says where Member was read from, for messages. It may be empty.
	MemberOrigin string
	// Log receives what happens, for people. Nil means nobody listens.
	Log func(format string, args ...any)
}

// Run deletes the Cluster, waits until it is gone and then deletes from the
// member what joining has put there. The Secrets in the control plane go with the
// Cluster.
func (u Unjoin) Run(ctx context.Context) error {
	u.ClusterNamespace = cmp.Or(u.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	u.Wait = cmp.Or(u.Wait, registration.DefaultWait)
	karmada, err := side.Karmada(u.Karmada, u.Log)
	if err != nil {
		return err
	}
	found, err := u.find(ctx, karmada)
	if err != nil {
		return err
	}
	member, err := u.member(ctx, karmada, found)
	if err != nil {
		return err
	}
	return u.remove(ctx, karmada, member, found)
}

// remove deletes the Cluster, if it was found, and cleans up in the member unless that
// is nil.
func (u Unjoin) remove(ctx context.Context, karmada, member *side.Side, found *clusterv1alpha1.Cluster) error {
	if u.DryRun {
		u.tellPlan(karmada, member, found)
		return nil
	}
	// The member is cleaned up last: deleting the Cluster needs its credentials
	// to take back what was propagated.
	if found != nil {
		if err := karmada.Remove(ctx, side.Removal{Cluster: found, Wait: u.Wait, Force: u.Force}); err != nil {
			return err
		}
	}
	if err := u.forget(ctx, karmada, found); err != nil {
		return err
	}
	if member == nil {
		u.tellLeft(karmada)
		return nil
	}
	// The limit begins anew: with Force the first one may be used up.
	cleaning, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	if err := u.leftovers().Delete(cleaning, member); err != nil {
		if !u.Force {
			return err
		}
		u.logf("warning: %v", err)
	}
	return nil
}

func (u Unjoin) find(ctx context.Context, karmada *side.Side) (*clusterv1alpha1.Cluster, error) {
	object, err := karmada.Get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: u.Name}})
	if err != nil {
		return nil, err
	}
	found, ok := object.(*clusterv1alpha1.Cluster)
	switch {
	case !ok && u.Force:
		u.logf("there is no Cluster %q in %s: cleaning up what is left", u.Name, karmada.Name)
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("there is no Cluster %q in %s (%s); with --force what a run that was interrupted has left of it is deleted", u.Name, karmada.Name, karmada.Host)
	}
	if found.Spec.SyncMode == clusterv1alpha1.Pull {
		return nil, fmt.Errorf("cluster %q is in Pull mode: use unregister", u.Name)
	}
	if err := admission.Deletable(found); err != nil {
		return nil, fmt.Errorf("cluster %q: %w", u.Name, err)
	}
	return found, nil
}

// member opens the member and makes sure that it is the cluster of the Cluster found,
// before anything is deleted anywhere.
func (u Unjoin) member(ctx context.Context, karmada *side.Side, found *clusterv1alpha1.Cluster) (*side.Side, error) {
	if u.Member == nil {
		return nil, nil
	}
	member, err := side.Member(u.Name, u.Member, u.Log)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	actual, err := member.Identify(asking, u.MemberOrigin)
	switch {
	case err != nil && u.Force && ctx.Err() == nil:
		u.logf("warning: %s will not be cleaned up: %v", member.Name, err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w\nTo unjoin a cluster that is gone leave out its kubeconfig, or repeat with --force", err)
	case found == nil:
		return member, u.refuseRegistered(ctx, karmada, member, actual)
	}
	return member, registration.CheckID(member.Name, member.Host, actual, found)
}

// refuseRegistered refuses to clean up, for a Cluster that does not exist, in a member
// that is registered under another name.
func (u Unjoin) refuseRegistered(ctx context.Context, karmada, member *side.Side, id string) error {
	registered, err := karmada.Clusters(ctx)
	if err != nil {
		return err
	}
	for _, other := range registered {
		if other.Spec.ID == id {
			return fmt.Errorf("the kubeconfig given for %s leads to Cluster %q: %s has its ID %s; choose the right context", member.Name, other.Name, member.Host, id)
		}
	}
	return nil
}

// forget deletes the credentials that are left when the Cluster is gone: they belong to
// no Cluster if the run that stored them was killed before it was there.
func (u Unjoin) forget(ctx context.Context, karmada *side.Side, of *clusterv1alpha1.Cluster) error {
	where := u.ClusterNamespace
	if of != nil && of.Spec.SecretRef != nil {
		where = of.Spec.SecretRef.Namespace
	}
	acting, impersonating := grant.Access{}.Secrets(u.Name, where)
	var errs []error
	for _, secret := range []client.Object{acting, impersonating} {
		have, err := karmada.Get(ctx, secret)
		if err == nil && have != nil && left(have) {
			err = karmada.Delete(ctx, have)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if apierrors.IsForbidden(err) {
		// Most Secrets go with their Cluster, so most do not need this right.
		u.logf("warning: whether credentials of cluster %q are left in %s could not be seen: %v", u.Name, karmada.Name, err)
		return nil
	}
	return err
}

// left tells whether a Secret was made by joining and belongs to no Cluster.
func left(secret client.Object) bool {
	return len(secret.GetOwnerReferences()) == 0 && secret.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue
}

func (u Unjoin) tellPlan(karmada, member *side.Side, found *clusterv1alpha1.Cluster) {
	if found != nil {
		u.logf("would delete %s in %s", karmada.Describe(found), karmada.Name)
	}
	if member == nil {
		u.tellLeft(karmada)
		return
	}
	for _, object := range u.leftovers().Objects() {
		u.logf("would delete %s in %s", member.Describe(object), member.Name)
	}
}

// tellLeft names what stays in a member that is not cleaned up, and how to delete it.
func (u Unjoin) tellLeft(karmada *side.Side) {
	var names []string
	for _, object := range append(u.leftovers().Objects(), registration.Account(u.ClusterNamespace, grant.Impersonator)) {
		names = append(names, karmada.Describe(object))
	}
	u.logf("warning: cluster %q is not cleaned up: what join created there stays, and the tokens of its accounts stay valid: %s. "+
		"To delete it, run: unjoin %[1]s --force --cluster-kubeconfig=<kubeconfig of %[1]s>", u.Name, strings.Join(names, ", "))
}

func (u Unjoin) logf(format string, args ...any) { registration.Log(u.Log).Printf(format, args...) }

// leftovers are what joining has put into the member.
func (u Unjoin) leftovers() grant.Leftovers {
	return grant.Leftovers{Cluster: u.Name, Namespace: u.ClusterNamespace, Log: u.Log}
}
