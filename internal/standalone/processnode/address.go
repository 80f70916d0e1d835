package processnode

import (
	"hash/fnv"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// Pod addresses are in 127.64.0.0/10. The loopback interface serves this network like
// 127.0.0.1, and no other program listens there.
const (
	firstOctet    = 127
	secondOctet   = 64
	addressBits   = 22
	addressesMask = 1<<addressBits - 1
)

// choosePodAddress returns the address of a Pod. It is derived from the UID, so it is the
// same after a restart and differs between nodes. An address that another Pod has is skipped.
func choosePodAddress(uid types.UID, isUsed func(netip.Addr) bool) netip.Addr {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid))
	for n := hash.Sum32(); ; n++ {
		host := n & addressesMask
		address := netip.AddrFrom4([4]byte{firstOctet, secondOctet | byte(host>>16), byte(host >> 8), byte(host)}) //nolint:gosec // cut to octets
		if last := byte(host); last != 0 && last != 255 && !isUsed(address) {                                      //nolint:gosec // cut to an octet
			return address
		}
	}
}
