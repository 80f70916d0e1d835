package layout

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"karmada.io/karmada/internal/programs/flags"
)

// listenSuffix ends the names of the flags that say where a program listens.
const listenSuffix = "bind-address"

// ErrElsewhere says that a program would listen where other machines or other Pods are.
var ErrElsewhere = errors.New("it is not an address of the Pod")

// confined returns the arguments of a program with all addresses of a machine narrowed to
// that of its Pod. An address to listen at that is neither this one nor the loopback
// address is an error: it would be one of the machine.
func confined(arguments []string, address string) ([]string, error) {
	var all []string
	flag := ""
	for _, argument := range arguments {
		value, prefix := argument, ""
		if strings.HasPrefix(argument, "-") {
			name, given, inline := strings.Cut(argument, "=")
			flag = name
			if !inline {
				all = append(all, argument)
				continue
			}
			value, prefix = given, name+"="
		}
		value = flags.ReplaceUnspecifiedHost(value, address)
		if strings.HasSuffix(strings.ReplaceAll(flag, "_", "-"), listenSuffix) && !isOwn(value, address) {
			return nil, fmt.Errorf("argument %s=%s: %w: leave the host out, or name %s or $(%s)", flag, value, ErrElsewhere, address, flags.PodAddressVariable)
		}
		all = append(all, prefix+value)
		flag = ""
	}
	return all, nil
}

// isOwn reports whether what listens at a place is out of reach of other machines and
// leaves the addresses of other Pods alone. Without a place nothing listens.
func isOwn(place, address string) bool {
	host, _, err := net.SplitHostPort(place)
	if err != nil {
		host = place
	}
	switch host {
	case "", "0", "localhost", address:
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	return ip == netip.IPv6Loopback() || ip.Unmap() == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
