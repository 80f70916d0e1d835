package enroll

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/impersonation"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// Cleanup deletes a Cluster's objects in the member.
type Cleanup struct {
	// Cluster is the Cluster's name. Namespace is the namespace of the accounts in the member.
	Cluster, Namespace string
	// Log receives messages about objects that are kept.
	Log registration.Log
}

// Objects returns the member's objects that join created only for this Cluster, in deletion order.
func (c Cleanup) Objects() []client.Object {
	account := registration.NewServiceAccount(c.Namespace, AccountName(c.Cluster))
	return []client.Object{
		NewMemberRoleBinding(c.Cluster, c.Namespace, ""), NewClusterRoleBinding(c.Cluster, c.Namespace), NewClusterRole(c.Cluster),
		NewTokenSecret(account), account,
	}
}

// SharedObjects returns the member's objects that several control planes may use, in deletion order.
func (c Cleanup) SharedObjects() []client.Object {
	account := registration.NewServiceAccount(c.Namespace, ImpersonatorAccount)
	return []client.Object{NewTokenSecret(account), account, registration.NewNamespace(c.Namespace)}
}

// Run deletes the objects that join created in the member. It keeps objects of other control planes, and
// objects that another control plane also uses. If the member client's DryRun is set, Run only logs what it
// would do.
func (c Cleanup) Run(ctx context.Context, member *clusterclient.Client) error {
	var errs []error
	for _, object := range c.Objects() {
		errs = append(errs, member.DeleteOwned(ctx, object))
	}
	errs = append(errs, c.deleteImpersonation(ctx, member), c.deleteShared(ctx, member))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster %q is gone, but %s was not cleaned up entirely: %w", c.Cluster, member.Name, err)
	}
	return nil
}

// ReadOwner returns the ID of the control plane that owns the member's objects, from their annotation. It is
// empty if no object exists or names an owner.
func (c Cleanup) ReadOwner(ctx context.Context, member *clusterclient.Client) (string, error) {
	for _, object := range c.Objects() {
		have, err := member.Get(ctx, object)
		if err != nil {
			return "", err
		}
		if have == nil {
			continue
		}
		if owners := domaincluster.Owners(have.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation]); len(owners) > 0 {
			return owners[0], nil
		}
	}
	return "", nil
}

// deleteImpersonation deletes the objects that let the control plane impersonate users, if one of this
// Cluster's Works created them. They remain if that Work was deleted by force, and would then conflict with
// the Work of the member's next Cluster.
func (c Cleanup) deleteImpersonation(ctx context.Context, member *clusterclient.Client) error {
	var errs []error
	for _, object := range []client.Object{impersonation.NewBinding(c.Namespace, ""), impersonation.NewRole(impersonation.Subjects{}, "")} {
		have, err := member.Get(ctx, object)
		if err == nil && have != nil && have.GetAnnotations()[workv1alpha1.WorkNamespaceAnnotation] == work.ExecutionNamespace(c.Cluster) {
			err = member.DeleteOwned(ctx, have)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteShared deletes the impersonator account and the namespace, unless another control plane uses them.
func (c Cleanup) deleteShared(ctx context.Context, member *clusterclient.Client) error {
	accounts := &corev1.ServiceAccountList{}
	if err := member.API.List(ctx, accounts, client.InNamespace(c.Namespace)); err != nil {
		return member.WrapError("listing the service accounts of", registration.NewNamespace(c.Namespace), err)
	}
	if other := accountOfOtherControlPlane(accounts.Items, c.Cluster, member.Owner); other != "" {
		c.Log.Printf("%s namespace %s in %s: service account %s belongs to another Cluster or another control plane", member.Keeping(),
			c.Namespace, member.Name, other)
		return c.ReleaseShared(ctx, member)
	}
	shared := registration.NewServiceAccount(c.Namespace, ImpersonatorAccount)
	if err := errors.Join(member.DeleteOwned(ctx, NewTokenSecret(shared)), member.DeleteOwned(ctx, shared)); err != nil {
		return err
	}
	return c.deleteNamespace(ctx, member)
}

// ReleaseShared removes this control plane from the shared objects' owners.
func (c Cleanup) ReleaseShared(ctx context.Context, member *clusterclient.Client) error {
	var errs []error
	for _, object := range c.SharedObjects() {
		errs = append(errs, member.Release(ctx, object))
	}
	return errors.Join(errs...)
}

// deleteNamespace deletes the namespace if its label shows that join created it and it contains no other
// objects.
func (c Cleanup) deleteNamespace(ctx context.Context, member *clusterclient.Client) error {
	object, err := member.Get(ctx, registration.NewNamespace(c.Namespace))
	if err != nil || object == nil {
		return err
	}
	if object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return member.Release(ctx, object)
	}
	if member.DryRun {
		c.Log.Printf("would delete %s in %s, unless it holds other objects", member.Describe(object), member.Name)
		return nil
	}
	remaining, err := member.FindRemainingObject(ctx, c.Namespace)
	if err != nil {
		// The namespace may contain objects that cannot be listed, so keep it.
		c.Log.Printf("keeping namespace %s in %s: its objects cannot be listed: %v", c.Namespace, member.Name, err)
		return member.Release(ctx, object)
	}
	if remaining != "" {
		c.Log.Printf("keeping namespace %s in %s: it holds %s", c.Namespace, member.Name, remaining)
		return member.Release(ctx, object)
	}
	// The deletion takes some seconds. The next join waits for it, so this run need not.
	return member.DeleteOwned(ctx, object)
}

// accountOfOtherControlPlane returns the name of an account that another Cluster or another control plane
// uses, or an empty string if there is none. name and controlPlane identify this account and this control
// plane.
func accountOfOtherControlPlane(accounts []corev1.ServiceAccount, name, controlPlane string) string {
	for _, account := range accounts {
		if !strings.HasPrefix(account.Name, accountPrefix) || account.Name == ImpersonatorAccount {
			continue
		}
		if account.Name != AccountName(name) || domaincluster.OtherOwner(account.Annotations[clusterv1alpha1.ControlPlaneAnnotation],
			controlPlane) != "" {
			return account.Name
		}
	}
	return ""
}
