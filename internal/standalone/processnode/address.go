package processnode

import (
	"hash/fnv"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/standalone/processnode/services"
)

// Pod addresses are in 127.64.0.0/10, except the part that is reserved for Services. The loopback
// interface serves this network in the same way as 127.0.0.1, and no other program listens on an
// address of this network.
const (
	firstOctet    = 127
	secondOctet   = 64
	addressBits   = 22
	addressesMask = 1<<addressBits - 1
	// serviceBit is set in the second octet of every Service address and of no Pod address.
	serviceBit = 32
)

// choosePodAddress returns a Pod's address. The address is derived from the Pod's UID, so it is the same
// after a restart and differs between nodes. Addresses of other Pods are skipped.
func choosePodAddress(uid types.UID, isUsed func(netip.Addr) bool) netip.Addr {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid))
	for n := hash.Sum32(); ; n++ {
		host := n & addressesMask
		address := netip.AddrFrom4([4]byte{firstOctet, secondOctet | byte(host>>16), byte(host >> 8), byte(host)}) // cut to octets
		if services.Contains(address) {
			octets := address.As4()
			octets[1] &^= serviceBit
			address = netip.AddrFrom4(octets)
		}
		if last := byte(host); last != 0 && last != 255 && !isUsed(address) { // cut to an octet
			return address
		}
	}
}
