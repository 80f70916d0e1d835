package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
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
	// Log receives what happens, for people. Nil means nobody listens.
	Log func(format string, args ...any)
}

// Run deletes the Cluster, waits until it is gone and then deletes from the
// member what joining has put there. The Secrets in the control plane go with the
// Cluster.
func (u Unjoin) Run(ctx context.Context) error {
	u.ClusterNamespace = cmp.Or(u.ClusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster)
	u.Wait = cmp.Or(u.Wait, DefaultWait)
	karmada, err := karmadaSide(u.Karmada, u.Log)
	if err != nil {
		return err
	}
	found, err := u.find(ctx, karmada)
	if err != nil {
		return err
	}
	var id string
	if found != nil {
		id = found.Spec.ID
	}
	member, err := u.member(ctx, id)
	if err != nil {
		return err
	}
	if u.DryRun {
		u.tellPlan(karmada, member, found)
		return nil
	}
	// The member is cleaned up last: deleting the Cluster needs its credentials
	// to take back what was propagated.
	if found != nil {
		if err := karmada.remove(ctx, removal{cluster: found, wait: u.Wait, force: u.Force}); err != nil {
			return err
		}
	}
	if err := u.forget(ctx, karmada, found); err != nil {
		return err
	}
	if member == nil {
		return nil
	}
	// The limit begins anew: with Force the first one may be used up.
	cleaning, cancel := context.WithTimeout(ctx, u.Wait)
	defer cancel()
	if err := u.cleanUp(cleaning, member); err != nil {
		if !u.Force {
			return err
		}
		u.logf("warning: %v", err)
	}
	return nil
}

func (u Unjoin) find(ctx context.Context, karmada *side) (*clusterv1alpha1.Cluster, error) {
	object, err := karmada.get(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: u.Name}})
	if err != nil {
		return nil, err
	}
	found, ok := object.(*clusterv1alpha1.Cluster)
	switch {
	case !ok && u.Force:
		u.logf("there is no Cluster %q in %s: cleaning up what is left", u.Name, karmada.name)
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("there is no Cluster %q in %s (%s); with --force what a run that was interrupted has left of it is deleted", u.Name, karmada.name, karmada.host)
	}
	if found.Spec.SyncMode == clusterv1alpha1.Pull {
		return nil, fmt.Errorf("cluster %q is in Pull mode: use unregister", u.Name)
	}
	return found, nil
}

// member opens the member and makes sure that it is the one with the given ID,
// before anything is deleted anywhere.
func (u Unjoin) member(ctx context.Context, id string) (*side, error) {
	if u.Member == nil {
		return nil, nil
	}
	member, err := memberSide(u.Name, u.Member, u.Log)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	actual, err := member.id(asking)
	switch {
	case err != nil && u.Force && ctx.Err() == nil:
		u.logf("warning: %s will not be cleaned up: %v", member.name, err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w\nTo unjoin a cluster that is gone leave out its kubeconfig, or repeat with --force", err)
	case id != "" && actual != id:
		return nil, fmt.Errorf("the kubeconfig given for %s leads to another cluster: %s has ID %s, Cluster %q has %s; choose the right context", member.name, member.host, actual, u.Name, id)
	}
	return member, nil
}

// forget deletes the credentials that are left when the Cluster is gone: they belong to
// no Cluster if the run that stored them was killed before it was there.
func (u Unjoin) forget(ctx context.Context, karmada *side, of *clusterv1alpha1.Cluster) error {
	where := u.ClusterNamespace
	if of != nil && of.Spec.SecretRef != nil {
		where = of.Spec.SecretRef.Namespace
	}
	acting, impersonating := access{}.secrets(u.Name, where)
	var errs []error
	for _, secret := range []client.Object{acting, impersonating} {
		have, err := karmada.get(ctx, secret)
		if err == nil && have != nil && left(have) {
			err = karmada.delete(ctx, have)
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if apierrors.IsForbidden(err) {
		// Most Secrets go with their Cluster, so most do not need this right.
		u.logf("warning: whether credentials of cluster %q are left in %s could not be seen: %v", u.Name, karmada.name, err)
		return nil
	}
	return err
}

// left tells whether a Secret was made by joining and belongs to no Cluster.
func left(secret client.Object) bool {
	return len(secret.GetOwnerReferences()) == 0 && secret.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] == clusterv1alpha1.KarmadaSystemLabelValue
}

func (u Unjoin) tellPlan(karmada, member *side, found *clusterv1alpha1.Cluster) {
	if found != nil {
		u.logf("would delete %s in %s", karmada.describe(found), karmada.name)
	}
	if member == nil {
		return
	}
	for _, object := range u.leftovers() {
		u.logf("would delete %s in %s", member.describe(object), member.name)
	}
}

// leftovers are what joining has put into the member for this Cluster alone, in
// the order in which it is deleted.
func (u Unjoin) leftovers() []client.Object {
	own := account(u.ClusterNamespace, accountName(u.Name))
	return []client.Object{
		roleBinding(u.Name, u.ClusterNamespace), role(u.Name), tokenRequest(own), own,
	}
}

// cleanUp deletes what joining has put into the member. What all control planes
// share there goes with the last of them.
func (u Unjoin) cleanUp(ctx context.Context, member *side) error {
	var errs []error
	for _, object := range u.leftovers() {
		errs = append(errs, member.delete(ctx, object))
	}
	errs = append(errs, u.cleanUpShared(ctx, member))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster %q is gone, but %s was not cleaned up entirely: %w", u.Name, member.name, err)
	}
	return nil
}

func (u Unjoin) cleanUpShared(ctx context.Context, member *side) error {
	accounts := &corev1.ServiceAccountList{}
	if err := member.api.List(ctx, accounts, client.InNamespace(u.ClusterNamespace)); err != nil {
		return member.explain("listing the service accounts of", namespace(u.ClusterNamespace), err)
	}
	if other := otherControlPlane(accounts.Items, u.Name); other != "" {
		u.logf("keeping namespace %s in %s: service account %s is there for another control plane", u.ClusterNamespace, member.name, other)
		return nil
	}
	shared := account(u.ClusterNamespace, impersonator)
	if err := errors.Join(member.delete(ctx, tokenRequest(shared)), member.delete(ctx, shared)); err != nil {
		return err
	}
	return u.deleteNamespace(ctx, member)
}

// deleteNamespace deletes the namespace if joining has made it, which its label
// tells, and nobody else has put anything there.
func (u Unjoin) deleteNamespace(ctx context.Context, member *side) error {
	object, err := member.get(ctx, namespace(u.ClusterNamespace))
	if err != nil || object == nil {
		return err
	}
	if object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return nil
	}
	occupant, err := member.occupant(ctx, u.ClusterNamespace)
	if err != nil {
		u.logf("keeping namespace %s in %s: whether others use it cannot be seen: %v", u.ClusterNamespace, member.name, err)
		return nil //nolint:nilerr // what cannot be seen may be there
	}
	if occupant != "" {
		u.logf("keeping namespace %s in %s: it holds %s", u.ClusterNamespace, member.name, occupant)
		return nil
	}
	// Nobody waits until it is gone, which takes seconds: who joins again does.
	return member.delete(ctx, object)
}

// otherControlPlane names an account that serves another Cluster than this one.
func otherControlPlane(accounts []corev1.ServiceAccount, name string) string {
	for _, account := range accounts {
		if strings.HasPrefix(account.Name, accountPrefix) && account.Name != impersonator && account.Name != accountName(name) {
			return account.Name
		}
	}
	return ""
}

// delete deletes an object; one that is not there is fine. An object that was
// read before is deleted only as long as it is the same.
func (s *side) delete(ctx context.Context, object client.Object) error {
	var options []client.DeleteOption
	if uid := object.GetUID(); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	err := s.api.Delete(ctx, object, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return s.explain("deleting", object, err)
	}
	s.log.printf("deleted %s in %s", s.describe(object), s.name)
	return nil
}

// awaitGone waits until an object is gone, or replaced by one of the same name.
// wait.Interrupted holds for the error when ctx ends first.
func (s *side) awaitGone(ctx context.Context, object client.Object) error {
	pace := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	return pace.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		have, err := s.get(ctx, object)
		if err != nil {
			// A control plane that is busy or restarting says nothing about the
			// object; the caller's limit ends this.
			if ctx.Err() != nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				return false, err
			}
			return false, nil
		}
		return have == nil || (object.GetUID() != "" && have.GetUID() != object.GetUID()), nil
	})
}

// takeFinalizers lets an object that is being deleted go.
func (s *side) takeFinalizers(ctx context.Context, object client.Object) error {
	have, err := s.get(ctx, object)
	if err != nil || have == nil || len(have.GetFinalizers()) == 0 {
		return err
	}
	before := have.DeepCopyObject().(client.Object)
	have.SetFinalizers(nil)
	if _, err := patch.Object(ctx, s.api, before, have); client.IgnoreNotFound(err) != nil {
		return s.explain("taking the finalizers off", have, err)
	}
	return nil
}

func (u Unjoin) logf(format string, args ...any) { Log(u.Log).printf(format, args...) }
