package processnode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// tcpTable is the file in which the kernel lists the IPv4 sockets of the machine.
const tcpTable = "/proc/net/tcp"

var errNotListening = errors.New("no program of the Pod listens on this port")

// ensureListening returns an error unless a socket listens at exactly this address. A socket
// that listens on all addresses does not count, because it belongs to another program of the
// machine.
func ensureListening(address netip.AddrPort) error {
	table, err := os.ReadFile(tcpTable)
	if err != nil {
		return fmt.Errorf("listing the sockets of the machine: %w", err)
	}
	if !isListening(string(table), address) {
		return fmt.Errorf("port %d of %s: %w", address.Port(), address.Addr(), errNotListening)
	}
	return nil
}

func isListening(table string, address netip.AddrPort) bool {
	// The kernel formats an address as one word in the byte order of the machine.
	octets := address.Addr().As4()
	want := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(octets[:]), address.Port())
	const local, state, listening = 1, 3, "0A"
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > state && fields[local] == want && fields[state] == listening {
			return true
		}
	}
	return false
}
