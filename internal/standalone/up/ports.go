package up

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"karmada.io/karmada/internal/standalone"
)

// choosePorts chooses a free port for each name without a port. published names ports that
// kubeconfigs of users contain. These ports do not change: if another process uses such a port,
// the start of the server fails later. internal names ports that only this process uses. If
// another process uses such a port, choosePorts chooses a new port.
func choosePorts(ports map[string]int, published, internal []string) error {
	// All listeners stay open until all ports are chosen, so that no two names get the same port.
	var listeners []net.Listener
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	choosePort := func(name string) error {
		listener, err := standalone.Listen(standalone.Loopback, ports[name])
		if err != nil {
			return fmt.Errorf("choosing a port for %s: %w", name, err)
		}
		listeners = append(listeners, listener)
		ports[name] = standalone.ListenerPort(listener)
		return nil
	}
	for _, name := range internal {
		err := choosePort(name)
		if errors.Is(err, syscall.EADDRINUSE) {
			ports[name] = 0
			err = choosePort(name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range published {
		if ports[name] != 0 {
			continue
		}
		if err := choosePort(name); err != nil {
			return err
		}
	}
	return nil
}
