package layout

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"karmada.io/karmada/internal/programs/flags"
)

// listenSuffix is the suffix of flags with a listen address.
const listenSuffix = "bind-address"

// ErrForeignAddress means that a program would listen on an address of the machine or of
// another Pod.
var ErrForeignAddress = errors.New("not an address of the Pod")

// restrictAddresses replaces listen addresses that mean "all addresses" with the address of the
// Pod. It returns an error for an address that is neither the address of the Pod nor loopback,
// because that would be an address of the machine.
func restrictAddresses(arguments []string, address string) ([]string, error) {
	var restricted []string
	flag := ""
	for _, argument := range arguments {
		value, prefix := argument, ""
		if strings.HasPrefix(argument, "-") {
			name, flagValue, inline := strings.Cut(argument, "=")
			flag = name
			if !inline {
				restricted = append(restricted, argument)
				continue
			}
			value, prefix = flagValue, name+"="
		}
		value = flags.ReplaceUnspecifiedHost(value, address)
		if strings.HasSuffix(strings.ReplaceAll(flag, "_", "-"), listenSuffix) && !isPodAddress(value, address) {
			return nil, fmt.Errorf("argument %s=%s: %w: omit the host, or use %s or $(%s)", flag, value, ErrForeignAddress, address, flags.PodAddressVariable)
		}
		restricted = append(restricted, prefix+value)
		flag = ""
	}
	return restricted, nil
}

// isPodAddress reports whether a listen address is not reachable from other machines and is not
// the address of another Pod. An empty address means that the program does not listen.
func isPodAddress(listenAddress, podAddress string) bool {
	host, _, err := net.SplitHostPort(listenAddress)
	if err != nil {
		host = listenAddress
	}
	switch host {
	case "", "0", "localhost", podAddress:
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return ip == netip.IPv6Loopback() || ip.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
