package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports of servers in tests. The ports are outside of the ephemeral port ranges of operating
// systems, so that a port stays free while its server is stopped.
const firstPort, lastPort = 20000, 30000

// FreePort returns a port of the loopback address on which no server listens. It reserves the port
// until the process ends: no other call returns the port, not even in another process, although the
// server of the port may not be started yet or may be stopped for some time.
func FreePort() (int, error) {
	var errs []error
	for range 20 {
		port := firstPort + rand.IntN(lastPort-firstPort) // no secret
		if err := reservePort(port); err != nil {
			errs = append(errs, err)
			continue
		}
		return port, nil
	}
	return 0, fmt.Errorf("looking for a free port: %w", errors.Join(errs...))
}

// reservations keeps the sockets of reserved ports open. Without a reference, the garbage collector
// would close them.
var reservations sync.Map

// reservePort returns an error if the port is reserved or in use. The reservation is a UDP socket,
// which does not prevent a server from listening on the TCP port. The operating system removes the
// reservation when the process ends.
func reservePort(port int) error {
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
