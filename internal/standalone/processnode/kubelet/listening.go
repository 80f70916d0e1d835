package kubelet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// tcpTable is where the kernel lists the IPv4 sockets of the machine.
const tcpTable = "/proc/net/tcp"

var errNotListening = errors.New("no program of the Pod listens there")

// CheckListening returns an error unless a socket listens at exactly this address. One
// that listens on all addresses is not the Pod's: another program of the machine has it.
func CheckListening(address netip.AddrPort) error {
	table, err := os.ReadFile(tcpTable)
	if err != nil {
		return fmt.Errorf("looking for the socket of the Pod: %w", err)
	}
	if !listensAt(string(table), address) {
		return fmt.Errorf("port %d of %s: %w", address.Port(), address.Addr(), errNotListening)
	}
	return nil
}

func listensAt(table string, address netip.AddrPort) bool {
	// The kernel writes an address as one word of the machine's byte order.
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
