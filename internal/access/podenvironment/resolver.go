package podenvironment

import (
	"context"
	"net"
	"net/netip"
	"os"
)

// DNSServerVariable is the environment variable with the host and port of the DNS server of the
// Pod. In a container, /etc/resolv.conf names this server.
const DNSServerVariable = "KARMADA_DNS_SERVER"

// UsePodResolver makes this process resolve names with the DNS server of its Pod, if the process
// runs without a container. Every program calls it before anything else. Otherwise the names of
// Services would be unknown on the network of the host. It may be called repeatedly.
func UsePodResolver() {
	server, err := netip.ParseAddrPort(os.Getenv(DNSServerVariable))
	if err != nil {
		return // in a container, or without a Pod
	}
	// The DNS server recognizes the Pod, and thereby the namespace, by the source address.
	dialer := net.Dialer{}
	if source, err := netip.ParseAddr(os.Getenv(PodAddressVariable)); err == nil {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(source, 0))
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "udp", server.String())
	}}
}
