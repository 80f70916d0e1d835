package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"karmada.io/karmada/internal/pki"
)

// storedState is stored in the data directory for the next `karmada up`.
type storedState struct {
	// Ports maps the servers' names to their ports.
	Ports map[string]int `json:"ports"`
	// Members are the names of the simulated member clusters.
	Members []string `json:"members,omitempty"`
	// PullMembers are the members in pull mode. A member that is already registered keeps its mode.
	PullMembers []string `json:"pull,omitempty"`
	// RegistrationTokens maps each member with an unfinished registration to the ID of the
	// registration's bootstrap token.
	RegistrationTokens map[string]string `json:"registering,omitempty"`
	// NodesPerMember is the number of simulated nodes in each member.
	NodesPerMember int `json:"nodesPerMember,omitempty"`
	// SkipJoin means that the user registers the members, and `karmada up` does not.
	SkipJoin bool `json:"unjoined,omitempty"`
	// Regions maps members to their regions. A member that is not started keeps its region.
	Regions map[string]string `json:"regions,omitempty"`
	// Settings are the flags of the last start that also apply to the next start.
	Settings storedSettings `json:"settings,omitzero"`
	// Kubernetes is the version of the API servers that last wrote the data, for example 1.36.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// readState reads the state of the last start. It returns an empty state for a new directory.
func (d dataDir) readState() (storedState, error) {
	s := storedState{Ports: map[string]int{}}
	data, err := os.ReadFile(d.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the state of the data directory: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("parsing %s: %w: remove the file to choose new ports, or the directory to start over", d.stateFile(), err)
	}
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	return s, nil
}

func (d dataDir) writeState(s storedState) error { return writeJSON(d.stateFile(), s) }

// processRecord describes one of the installation's processes.
type processRecord struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return pki.WriteFile(path, append(data, '\n'), 0o600)
}
