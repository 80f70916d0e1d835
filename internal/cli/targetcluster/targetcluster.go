// Package targetcluster selects the cluster in which a command acts: the control plane or a member.
// Commands reach members through the cluster proxy with the caller's credentials.
package targetcluster

import (
	"fmt"

	"karmada.io/karmada/internal/cli/command"
)

// KarmadaName is the value of the column CLUSTER for the control plane. No member can have this
// name, because names of Clusters are in lower case.
const KarmadaName = "Karmada"

// Target is the cluster in which a command acts. The zero value is the control plane.
type Target struct {
	// Cluster is the name of the member. Empty means the control plane.
	Cluster string
}

// IsMember reports whether the target is a member.
func (t Target) IsMember() bool { return t.Cluster != "" }

// Name returns the value of the column CLUSTER.
func (t Target) Name() string {
	if t.IsMember() {
		return t.Cluster
	}
	return KarmadaName
}

// String returns the text that describes the target in messages.
func (t Target) String() string {
	if t.IsMember() {
		return fmt.Sprintf("member %q", t.Cluster)
	}
	return "the control plane"
}

// PrefixError adds the name of the member to the error of a member. It returns an error of the
// control plane unchanged.
func (t Target) PrefixError(err error) error {
	if err == nil || !t.IsMember() {
		return err
	}
	return fmt.Errorf("cluster(%s): %w", t.Cluster, err)
}

// host returns the address of the target. karmada is the address of the control plane.
func (t Target) host(karmada string) string {
	if t.IsMember() {
		return command.ProxyURL(karmada, t.Cluster)
	}
	return karmada
}
