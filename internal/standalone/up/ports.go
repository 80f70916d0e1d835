package up

import (
	"errors"
	"fmt"
	"syscall"

	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/freeport"
)

// choosePorts chooses a free port for each name that has no port. published contains the names whose
// ports users' kubeconfigs contain. These ports do not change: if another process uses such a port,
// starting the server fails later. internal contains the names whose ports only this process uses. If
// another process uses such a port, choosePorts chooses a new one.
func choosePorts(ports map[string]int, published, internal []string) error {
	for _, name := range internal {
		inUse, err := isPortInUse(ports[name])
		if err != nil {
			return fmt.Errorf("checking the port of %s: %w", name, err)
		}
		if inUse {
			ports[name] = 0
		}
	}
	for _, name := range append(published, internal...) {
		if ports[name] != 0 {
			continue
		}
		port, err := freeport.Reserve()
		if err != nil {
			return fmt.Errorf("choosing a port for %s: %w", name, err)
		}
		ports[name] = port
	}
	return nil
}

// isPortInUse returns whether another process listens on the given port. Port 0 is never in use.
func isPortInUse(port int) (bool, error) {
	listener, err := standalone.Listen(standalone.Loopback, port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, listener.Close()
}
