package up

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"karmada.io/karmada/internal/standalone"
)

// choosePorts completes the remembered ports with free ones for the names that
// have none. A port for others that somebody else took meanwhile stays: starting its
// server fails and says so, because kubeconfigs out there name it. One that only this
// process knows is chosen anew.
func choosePorts(remembered map[string]int, forOthers, inside []string) error {
	// All are held open until the end, so that no two names get the same.
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	hold := func(name string) error {
		listener, err := standalone.Listen(standalone.Loopback, remembered[name])
		if err != nil {
			return fmt.Errorf("choosing a port for %s: %w", name, err)
		}
		held = append(held, listener)
		remembered[name] = standalone.Port(listener)
		return nil
	}
	for _, name := range inside {
		err := hold(name)
		if errors.Is(err, syscall.EADDRINUSE) {
			remembered[name] = 0
			err = hold(name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range forOthers {
		if remembered[name] != 0 {
			continue
		}
		if err := hold(name); err != nil {
			return err
		}
	}
	return nil
}
