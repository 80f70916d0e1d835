package processnode

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestCheckListeningRejectsPortsOfOtherPrograms(t *testing.T) {
	allAddresses, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = allAddresses.Close() }()
	podListener, err := net.Listen("tcp4", "127.66.1.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = podListener.Close() }()
	pod := netip.MustParseAddr("127.66.1.2")
	portOf := func(l net.Listener) uint16 { return l.Addr().(*net.TCPAddr).AddrPort().Port() }
	tests := map[string]struct {
		address netip.AddrPort
		want    error
	}{
		"a port of the Pod":                    {netip.AddrPortFrom(pod, portOf(podListener)), nil},
		"a port that is open on all addresses": {netip.AddrPortFrom(pod, portOf(allAddresses)), errNotListening},
		"the port of another Pod":              {netip.AddrPortFrom(netip.MustParseAddr("127.66.1.3"), portOf(podListener)), errNotListening},
		"a port that shares only the low byte": {netip.AddrPortFrom(pod, portOf(podListener)&0xff), errNotListening},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := ensureListening(test.address); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}
