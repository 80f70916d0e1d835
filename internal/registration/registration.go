// Package registration contains what push mode and pull mode share: the validation of cluster names, the
// detection of duplicate registrations, advice about API errors, bootstrap tokens, and objects that exist in
// both the control plane and the member.
//
// Each package below this package imports only packages that precede it in this list: clusterclient is a
// client for the control plane or the member, enroll creates the control plane's accounts in a member and an
// agent's Cluster, push joins and unjoins members, and pull registers and unregisters them.
package registration

import (
	"fmt"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

// DefaultWait is the default time limit for the removal of a Cluster.
const DefaultWait = time.Minute

// Log logs a progress message for the user, with the arguments of fmt.Printf.
type Log func(format string, args ...any)

// Printf logs a message. It does nothing if l is nil.
func (l Log) Printf(format string, args ...any) {
	if l != nil {
		l(format, args...)
	}
}

// RegisteredError means that the cluster or its name is already registered.
type RegisteredError struct {
	// Name and ID identify the cluster whose registration was requested.
	Name, ID string
	// Existing is the stored Cluster with this name or ID.
	Existing clusterv1alpha1.Cluster
}

// IsSameCluster reports whether the stored Cluster has both the requested name and the requested ID.
func (r *RegisteredError) IsSameCluster() bool {
	return r.Existing.Name == r.Name && r.Existing.Spec.ID == r.ID
}

func (r *RegisteredError) Error() string {
	taken := fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered", r.ID, r.Name)
	switch {
	case r.IsSameCluster() && !r.Existing.DeletionTimestamp.IsZero():
		return fmt.Sprintf("%s: Cluster %q is this very cluster and is being deleted; wait until it is gone and try again", taken,
			r.Existing.Name)
	case r.Existing.Name == r.Name && r.Existing.Spec.ID == "":
		return fmt.Sprintf("%s: Cluster %q has no spec.id, so it cannot be verified to be this cluster; choose another name, or unjoin that one first", taken, r.Existing.Name)
	case r.IsSameCluster():
		return fmt.Sprintf("%s: Cluster %q is this very cluster, in %s mode; it is registered and nothing was changed", taken, r.Existing.Name,
			r.Existing.Spec.SyncMode)
	case r.Existing.Name == r.Name:
		return fmt.Sprintf("%s: Cluster %q is another cluster, with ID %s; choose another name, or unjoin that one first; if that cluster was rebuilt, accept it and try again: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"id\":%q}}'",
			taken, r.Existing.Name, r.Existing.Spec.ID, r.Existing.Name, r.ID)
	default:
		return fmt.Sprintf("%s: this cluster is registered as Cluster %q; use that one, or unjoin it first", taken, r.Existing.Name)
	}
}

// EnsureNotRegistered returns a RegisteredError if a registered Cluster has the given name or ID. If one
// Cluster has the name and another one has the ID, the error contains the Cluster with the name.
func EnsureNotRegistered(registered []clusterv1alpha1.Cluster, name, id string) error {
	for _, other := range registered {
		if other.Name == name {
			return &RegisteredError{Name: name, ID: id, Existing: other}
		}
	}
	for _, other := range registered {
		if other.Spec.ID == id {
			return &RegisteredError{Name: name, ID: id, Existing: other}
		}
	}
	return nil
}

// VerifyMemberIdentity returns an error unless the ID of the member at host is equal to the Cluster's ID.
// Callers must not delete anything in a member that fails this verification.
func VerifyMemberIdentity(member, host, id string, of *clusterv1alpha1.Cluster) error {
	switch of.Spec.ID {
	case id:
		return nil
	case "":
		return fmt.Errorf("the kubeconfig given for %s cannot be verified to lead to Cluster %q: %s has ID %s, and spec.id of the Cluster is empty; if it is that cluster, run: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"id\":\"%s\"}}'",
			member, of.Name, host, id, of.Name, id)
	default:
		return fmt.Errorf("the kubeconfig given for %s leads to another cluster: %s has ID %s, Cluster %q has %s; choose the right context",
			member, host, id, of.Name, of.Spec.ID)
	}
}

// ValidateName returns an error unless name is a valid Cluster name: a DNS label of at most 48 characters.
func ValidateName(name string) error {
	named := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	named.Name = name
	for _, wrong := range cluster.Validate(named) {
		if wrong.Field == "metadata.name" {
			return fmt.Errorf("cluster name %q: %s", name, wrong.Detail)
		}
	}
	return nil
}
