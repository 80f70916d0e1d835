package services

import (
	"hash/fnv"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Service addresses are in 127.120.0.0/13. Pods have no address of this network.
const (
	firstOctet    = 127
	secondOctet   = 120
	addressBits   = 19
	addressesMask = 1<<addressBits - 1
)

// Contains reports whether an address is reserved for Services.
func Contains(address netip.Addr) bool {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{firstOctet, secondOctet}), 32-addressBits).Contains(address)
}

// loopback is the only address on which node ports and the DNS server listen.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// allocator assigns addresses to Services.
type allocator struct {
	addresses map[types.UID]netip.Addr
	used      map[netip.Addr]bool
}

func newAllocator() *allocator {
	return &allocator{addresses: map[types.UID]netip.Addr{}, used: map[netip.Addr]bool{}}
}

// hasAddress reports whether a Service has an address of its own. Headless Services and external
// names have none.
func hasAddress(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && service.Spec.ClusterIP != corev1.ClusterIPNone
}

// addressOf returns a Service's address. It is derived from the Service's UID, so it is the same after a
// restart and differs between clusters. Addresses of other Services are skipped. The result is the zero Addr
// for a Service without an address.
func (a *allocator) addressOf(service *corev1.Service) netip.Addr {
	if !hasAddress(service) {
		return netip.Addr{}
	}
	if address, ok := a.addresses[service.UID]; ok {
		return address
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(service.UID))
	for n := hash.Sum32(); ; n++ {
		host := n & addressesMask
		address := netip.AddrFrom4([4]byte{firstOctet, secondOctet | byte(host>>16), byte(host >> 8), byte(host)}) // cut to octets
		if last := byte(host); last != 0 && last != 255 && !a.used[address] {                                      // cut to an octet
			a.addresses[service.UID], a.used[address] = address, true
			return address
		}
	}
}

// retain releases the addresses of all other Services.
func (a *allocator) retain(existing []*corev1.Service) {
	keep := map[types.UID]bool{}
	for _, service := range existing {
		keep[service.UID] = hasAddress(service)
	}
	for uid, address := range a.addresses {
		if !keep[uid] {
			delete(a.addresses, uid)
			delete(a.used, address)
		}
	}
}
