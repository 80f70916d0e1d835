package processnode

import (
	"hash/fnv"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// Pods have their addresses in 127.64.0.0/10, which the loopback interface answers
// for like for 127.0.0.1, and where nobody else listens.
const (
	firstOctet    = 127
	secondOctet   = 64
	addressBits   = 22
	addressesMask = 1<<addressBits - 1
)

// addressOf is the address of a Pod. It follows from its id, so that it stays over
// restarts and differs from node to node; one that another Pod has is passed over.
func addressOf(uid types.UID, taken func(netip.Addr) bool) netip.Addr {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid))
	for n := hash.Sum32(); ; n++ {
		host := n & addressesMask
		address := netip.AddrFrom4([4]byte{firstOctet, secondOctet | byte(host>>16), byte(host >> 8), byte(host)}) //nolint:gosec // cut to octets
		if last := byte(host); last != 0 && last != 255 && !taken(address) {                                       //nolint:gosec // cut to an octet
			return address
		}
	}
}
