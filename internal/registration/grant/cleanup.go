package grant

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

// Cleanup deletes the objects in a member that belong to one Cluster of a control plane.
type Cleanup struct {
	// Cluster is the name of the Cluster. Namespace is the namespace of the accounts in the member.
	Cluster, Namespace string
	// Log receives messages about objects that are not deleted.
	Log registration.Log
}

// Objects returns the objects in the member that join created only for this Cluster, in the order
// of their deletion.
func (c Cleanup) Objects() []client.Object {
	account := registration.NewServiceAccount(c.Namespace, AccountName(c.Cluster))
	return []client.Object{
		NewMemberRoleBinding(c.Cluster, c.Namespace, ""), NewClusterRoleBinding(c.Cluster, c.Namespace), NewClusterRole(c.Cluster), NewTokenSecret(account), account,
	}
}

// Run deletes the objects that join created in the member. Objects that several control planes
// share are deleted only if no other control plane uses them.
func (c Cleanup) Run(ctx context.Context, member *clusterclient.Client) error {
	var errs []error
	for _, object := range c.Objects() {
		errs = append(errs, member.Delete(ctx, object))
	}
	errs = append(errs, c.deleteShared(ctx, member))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster %q is gone, but %s was not cleaned up entirely: %w", c.Cluster, member.Name, err)
	}
	return nil
}

// deleteShared deletes the impersonator account and the namespace unless another control plane
// uses these objects.
func (c Cleanup) deleteShared(ctx context.Context, member *clusterclient.Client) error {
	accounts := &corev1.ServiceAccountList{}
	if err := member.API.List(ctx, accounts, client.InNamespace(c.Namespace)); err != nil {
		return member.WrapError("listing the service accounts of", registration.NewNamespace(c.Namespace), err)
	}
	if other := accountOfOtherControlPlane(accounts.Items, c.Cluster); other != "" {
		c.Log.Printf("keeping namespace %s in %s: service account %s belongs to another control plane", c.Namespace, member.Name, other)
		return nil
	}
	shared := registration.NewServiceAccount(c.Namespace, ImpersonatorAccount)
	if err := errors.Join(member.Delete(ctx, NewTokenSecret(shared)), member.Delete(ctx, shared)); err != nil {
		return err
	}
	return c.deleteNamespace(ctx, member)
}

// deleteNamespace deletes the namespace if its label shows that join created it, and if it
// contains no other objects.
func (c Cleanup) deleteNamespace(ctx context.Context, member *clusterclient.Client) error {
	object, err := member.Get(ctx, registration.NewNamespace(c.Namespace))
	if err != nil || object == nil {
		return err
	}
	if object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return nil
	}
	remaining, err := member.FindRemainingObject(ctx, c.Namespace)
	if err != nil {
		// Keep the namespace, because objects that cannot be listed may exist.
		c.Log.Printf("keeping namespace %s in %s: its objects cannot be listed: %v", c.Namespace, member.Name, err)
		return nil
	}
	if remaining != "" {
		c.Log.Printf("keeping namespace %s in %s: it holds %s", c.Namespace, member.Name, remaining)
		return nil
	}
	// The deletion takes some seconds. This run does not wait for it, but the next join does.
	return member.Delete(ctx, object)
}

// accountOfOtherControlPlane returns the name of an account that another Cluster uses, or an empty
// string if there is none.
func accountOfOtherControlPlane(accounts []corev1.ServiceAccount, name string) string {
	for _, account := range accounts {
		if strings.HasPrefix(account.Name, accountPrefix) && account.Name != ImpersonatorAccount && account.Name != AccountName(name) {
			return account.Name
		}
	}
	return ""
}
