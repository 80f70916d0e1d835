package up

import (
	"fmt"

	"karmada.io/karmada/internal/standalone"
)

// choosePorts completes the remembered ports with free ones for the names that
// have none. A remembered port that somebody else took meanwhile stays: starting
// its server fails and says so, because kubeconfigs out there name it.
func choosePorts(remembered map[string]int, names ...string) error {
	for _, name := range names {
		if remembered[name] != 0 {
			continue
		}
		listener, err := standalone.Listen(standalone.Loopback, 0)
		if err != nil {
			return fmt.Errorf("choosing a port for %s: %w", name, err)
		}
		// All are held open until the end, so that no two names get the same.
		defer func() { _ = listener.Close() }()
		remembered[name] = standalone.Port(listener)
	}
	return nil
}
