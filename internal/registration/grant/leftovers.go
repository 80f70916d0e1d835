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
	"karmada.io/karmada/internal/registration/side"
)

// Leftovers are what a member holds for one Cluster of a control plane.
type Leftovers struct {
	// Cluster is its name, Namespace where its accounts are in the member.
	Cluster, Namespace string
	// Log receives what stays, for people.
	Log registration.Log
}

// Objects are what joining has put into the member for this Cluster alone, in
// the order in which it is deleted.
func (l Leftovers) Objects() []client.Object {
	own := registration.Account(l.Namespace, AccountName(l.Cluster))
	return []client.Object{
		MemberRoleBinding(l.Cluster, l.Namespace, ""), RoleBinding(l.Cluster, l.Namespace), Role(l.Cluster), TokenRequest(own), own,
	}
}

// Delete deletes what joining has put into the member. What all control planes
// share there goes with the last of them.
func (l Leftovers) Delete(ctx context.Context, member *side.Side) error {
	var errs []error
	for _, object := range l.Objects() {
		errs = append(errs, member.Delete(ctx, object))
	}
	errs = append(errs, l.deleteShared(ctx, member))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster %q is gone, but %s was not cleaned up entirely: %w", l.Cluster, member.Name, err)
	}
	return nil
}

func (l Leftovers) deleteShared(ctx context.Context, member *side.Side) error {
	accounts := &corev1.ServiceAccountList{}
	if err := member.API.List(ctx, accounts, client.InNamespace(l.Namespace)); err != nil {
		return member.Explain("listing the service accounts of", registration.Namespace(l.Namespace), err)
	}
	if other := otherControlPlane(accounts.Items, l.Cluster); other != "" {
		l.Log.Printf("keeping namespace %s in %s: service account %s is there for another control plane", l.Namespace, member.Name, other)
		return nil
	}
	shared := registration.Account(l.Namespace, Impersonator)
	if err := errors.Join(member.Delete(ctx, TokenRequest(shared)), member.Delete(ctx, shared)); err != nil {
		return err
	}
	return l.deleteNamespace(ctx, member)
}

// deleteNamespace deletes the namespace if joining has made it, which its label
// tells, and nobody else has put anything there.
func (l Leftovers) deleteNamespace(ctx context.Context, member *side.Side) error {
	object, err := member.Get(ctx, registration.Namespace(l.Namespace))
	if err != nil || object == nil {
		return err
	}
	if object.GetLabels()[clusterv1alpha1.KarmadaSystemLabel] != clusterv1alpha1.KarmadaSystemLabelValue {
		return nil
	}
	occupant, err := member.Occupant(ctx, l.Namespace)
	if err != nil {
		// What cannot be seen may be there.
		l.Log.Printf("keeping namespace %s in %s: whether others use it cannot be seen: %v", l.Namespace, member.Name, err)
		return nil
	}
	if occupant != "" {
		l.Log.Printf("keeping namespace %s in %s: it holds %s", l.Namespace, member.Name, occupant)
		return nil
	}
	// Nobody waits until it is gone, which takes seconds: who joins again does.
	return member.Delete(ctx, object)
}

// otherControlPlane names an account that serves another Cluster than this one.
func otherControlPlane(accounts []corev1.ServiceAccount, name string) string {
	for _, account := range accounts {
		if strings.HasPrefix(account.Name, accountPrefix) && account.Name != Impersonator && account.Name != AccountName(name) {
			return account.Name
		}
	}
	return ""
}
