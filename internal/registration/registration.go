// Package registration answers "which words do all ways into and out of a control
// plane share?": the names that clusters may have, why one is taken, what advice fits
// an error, and the objects that both sides hold.
//
// The packages below it, each of which knows only those before it: side is one of the
// two clusters, grant what a member lets the control plane do, enroll how an agent makes
// its Cluster; push joins and unjoins, pull registers and unregisters.
package registration

import (
	"fmt"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

// DefaultWait is how long the removal of a Cluster may take.
const DefaultWait = time.Minute

// Log receives what happens, for people. Arguments are as for fmt.Printf.
type Log func(format string, args ...any)

// Printf says it to whoever listens.
func (l Log) Printf(format string, args ...any) {
	if l != nil {
		l(format, args...)
	}
}

// RegisteredError tells that the cluster or its name is registered already.
type RegisteredError struct {
	// Name and ID are what was to be registered.
	Name, ID string
	// By is the Cluster in the way.
	By clusterv1alpha1.Cluster
}

// Same tells that the Cluster in the way is the wanted one: same name, same
// cluster.
func (e *RegisteredError) Same() bool { return e.By.Name == e.Name && e.By.Spec.ID == e.ID }

func (e *RegisteredError) Error() string {
	taken := fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered", e.ID, e.Name)
	switch {
	case e.Same() && !e.By.DeletionTimestamp.IsZero():
		return fmt.Sprintf("%s: Cluster %q is this very cluster and is being deleted; wait until it is gone and try again", taken, e.By.Name)
	case e.By.Name == e.Name && e.By.Spec.ID == "":
		return fmt.Sprintf("%s: Cluster %q has no spec.id, so whether it is this cluster is not known; choose another name, or unjoin that one first", taken, e.By.Name)
	case e.Same():
		return fmt.Sprintf("%s: Cluster %q is this very cluster, in %s mode; it is registered and nothing was changed", taken, e.By.Name, e.By.Spec.SyncMode)
	case e.By.Name == e.Name:
		return fmt.Sprintf("%s: Cluster %q is another cluster, with ID %s; choose another name, or unjoin that one first; if that cluster was rebuilt, accept it and try again: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"id\":%q}}'",
			taken, e.By.Name, e.By.Spec.ID, e.By.Name, e.ID)
	default:
		return fmt.Sprintf("%s: this cluster is registered as Cluster %q; use that one, or unjoin it first", taken, e.By.Name)
	}
}

// RefuseDuplicate returns a RegisteredError if one of the Clusters has the name
// or is the cluster. The one of that name is told of first.
func RefuseDuplicate(registered []clusterv1alpha1.Cluster, name, id string) error {
	for _, other := range registered {
		if other.Name == name {
			return &RegisteredError{Name: name, ID: id, By: other}
		}
	}
	for _, other := range registered {
		if other.Spec.ID == id {
			return &RegisteredError{Name: name, ID: id, By: other}
		}
	}
	return nil
}

// CheckID returns why the member, a cluster with the given ID at host, is not proved to
// be the cluster of the Cluster. Nothing may be deleted in such a member.
func CheckID(member, host, id string, of *clusterv1alpha1.Cluster) error {
	switch of.Spec.ID {
	case id:
		return nil
	case "":
		return fmt.Errorf("whether the kubeconfig given for %s leads to Cluster %q is not known: %s has ID %s, and spec.id of the Cluster is empty; if it is that cluster: kubectl patch cluster %s --type=merge -p '{\"spec\":{\"id\":\"%s\"}}'",
			member, of.Name, host, id, of.Name, id)
	default:
		return fmt.Errorf("the kubeconfig given for %s leads to another cluster: %s has ID %s, Cluster %q has %s; choose the right context", member, host, id, of.Name, of.Spec.ID)
	}
}

// ValidateName returns why no Cluster can have the name: it must be a DNS label
// of at most 48 characters.
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
