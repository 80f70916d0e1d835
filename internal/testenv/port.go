package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports of servers in tests. The ports are outside of the ephemeral port ranges of operating
// systems, so that a port stays free while its server is stopped.
const firstPort, lastPort = 20000, 30000

// FreePort returns a port of the loopback address on which no server listens.
func FreePort() (int, error) {
	var errs []error
	for range 20 {
		port := firstPort + rand.IntN(lastPort-firstPort) // no secret
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, listener.Close()
		}
		errs = append(errs, err)
	}
	return 0, fmt.Errorf("looking for a free port: %w", errors.Join(errs...))
}
