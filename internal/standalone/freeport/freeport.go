// Package freeport reserves TCP ports for servers of this machine that start later or restart.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The range of the ports is below the ephemeral port ranges of operating systems, because a client
// connection would otherwise occupy the port of a server that is stopped. It is below the NodePorts
// of Kubernetes as well.
const firstPort, lastPort = 20000, 29999

const maxAttempts = 50

// Reserve returns a port of the loopback address on which no server listens. It reserves the port
// until the process ends: no other call of Reserve returns the port, not even in another process,
// although the port's server may not be started yet or may be stopped for some time.
func Reserve() (int, error) {
	var errs []error
	for range maxAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1) // no secret
		if err := reserve(port); err != nil {
			errs = append(errs, err)
			continue
		}
		return port, nil
	}
	return 0, fmt.Errorf("looking for a free port from %d to %d: %w", firstPort, lastPort, errors.Join(errs...))
}

// reservations keeps the sockets of reserved ports open. Without a reference, the garbage collector
// would close them.
var reservations sync.Map

// reserve returns an error if the port is reserved or in use. The reservation is a UDP socket,
// which does not prevent a server from listening on the TCP port. The operating system removes the
// reservation when the process ends.
func reserve(port int) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	reservation, err := net.ListenPacket("udp", address)
	if err != nil {
		return fmt.Errorf("reserving port %d: %w", port, err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(fmt.Errorf("listening on port %d: %w", port, err), reservation.Close())
	}
	reservations.Store(port, reservation)
	return listener.Close()
}
