// Package place answers: where does a command act? In the control plane or in a
// member, which is reached through the control plane with the credentials of the
// caller.
package place

import (
	"fmt"

	"karmada.io/karmada/internal/cli/command"
)

// KarmadaName is what the column CLUSTER says of the control plane. No member can
// have this name: names of Clusters are in lower case.
const KarmadaName = "Karmada"

// Place is where a command acts. The zero value is the control plane.
type Place struct {
	// Cluster is the name of the member; empty means the control plane.
	Cluster string
}

// Member tells a member from the control plane.
func (p Place) Member() bool { return p.Cluster != "" }

// Name is what the column CLUSTER says.
func (p Place) Name() string {
	if p.Member() {
		return p.Cluster
	}
	return KarmadaName
}

// String names the place in a sentence.
func (p Place) String() string {
	if p.Member() {
		return fmt.Sprintf("member %q", p.Cluster)
	}
	return "the control plane"
}

// Prefix adds the name of the member to its error, so that errors of several
// members can be told apart. Those of the control plane stay as they are.
func (p Place) Prefix(err error) error {
	if err == nil || !p.Member() {
		return err
	}
	return fmt.Errorf("cluster(%s): %w", p.Cluster, err)
}

// host is the address of the place when the control plane is at karmada.
func (p Place) host(karmada string) string {
	if p.Member() {
		return command.ProxyURL(karmada, p.Cluster)
	}
	return karmada
}
