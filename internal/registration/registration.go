// Package registration answers: how does a cluster become a member that the
// control plane pushes to, and how does it stop being one?
//
// Joining gives the control plane two service accounts in the member (one to act,
// one to impersonate the callers of the cluster proxy), stores their tokens in
// the control plane and creates the Cluster that points to them. Unjoining goes
// the same way back.
//
// Invariants: a cluster has one name. The Cluster is created last, after its
// credentials have proved to work. A join that does not end well deletes what it
// has created itself on both sides, and nothing else. Nothing is deleted in a
// cluster whose identity is not that of the Cluster being unjoined.
package registration

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

const (
	// DefaultTokenTimeout is how long a member may take to issue a token.
	DefaultTokenTimeout = 30 * time.Second

	// DefaultWait is how long the removal of a Cluster may take.
	DefaultWait = time.Minute

	// requestTimeout bounds every single request, watches included.
	requestTimeout = 40 * time.Second

	// undoTimeout bounds the clean-up after a join that did not end well. It
	// goes on when the caller has given up.
	undoTimeout = 30 * time.Second
)

// Log receives what happens, for people. Arguments are as for fmt.Printf.
type Log func(format string, args ...any)

func (l Log) printf(format string, args ...any) {
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
	case e.Same():
		return fmt.Sprintf("%s: Cluster %q is this very cluster, in %s mode; it is registered and nothing was changed", taken, e.By.Name, e.By.Spec.SyncMode)
	case e.By.Name == e.Name:
		return fmt.Sprintf("%s: Cluster %q is another cluster, with ID %s; choose another name, or unjoin that one first", taken, e.By.Name, e.By.Spec.ID)
	default:
		return fmt.Sprintf("%s: this cluster is registered as Cluster %q; use that one, or unjoin it first", taken, e.By.Name)
	}
}

// refuseDuplicate returns a RegisteredError if one of the Clusters has the name
// or is the cluster. The one of that name is told of first.
func refuseDuplicate(registered []clusterv1alpha1.Cluster, name, id string) error {
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

func checkConfig(config *rest.Config, side string) error {
	if config == nil {
		return errors.New("no way to reach " + side + " was given")
	}
	return nil
}
