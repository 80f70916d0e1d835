package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"karmada.io/karmada/internal/pki"
)

// state is what a second `karmada up` must know of the first.
type state struct {
	// Ports are the ports chosen for each server.
	Ports map[string]int `json:"ports"`
	// Members are the simulated member clusters.
	Members []string `json:"members,omitempty"`
	// Pull are those of them that an agent serves. A member that is registered stays
	// as it is.
	Pull []string `json:"pull,omitempty"`
	// Registering are those of them whose registration has begun and not ended, each
	// with the ID of its token.
	Registering map[string]string `json:"registering,omitempty"`
	// NodesPerMember is how many simulated nodes each has.
	NodesPerMember int `json:"nodesPerMember,omitempty"`
	// Unjoined tells that registering the members is left to the user.
	Unjoined bool `json:"unjoined,omitempty"`
	// Kubernetes is the version, such as 1.36, whose API servers wrote the data last.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// readState reads what an earlier start wrote; a new directory has none.
func (d dataDir) readState() (state, error) {
	s := state{Ports: map[string]int{}}
	data, err := os.ReadFile(d.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading state of data directory: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("reading %s: %w: remove the file to choose new ports, or the directory to start over", d.stateFile(), err)
	}
	if s.Ports == nil {
		s.Ports = map[string]int{}
	}
	return s, nil
}

func (d dataDir) writeState(s state) error { return writeJSON(d.stateFile(), s) }

// process is a process of the installation.
type process struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
}

func (d dataDir) writeProcesses(processes []process) error {
	return writeJSON(d.processesFile(), processes)
}

// unfinished is the end of the name of a file that is being written.
const unfinished = ".new"

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return pki.WriteFile(path, append(data, '\n'), 0o600)
}
