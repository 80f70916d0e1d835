package kubelet

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestAPortOfTheMachineIsNotOneOfAPod(t *testing.T) {
	everywhere, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = everywhere.Close() }()
	own, err := net.Listen("tcp4", "127.66.1.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	pod := netip.MustParseAddr("127.66.1.2")
	portOf := func(l net.Listener) uint16 { return l.Addr().(*net.TCPAddr).AddrPort().Port() }
	tests := map[string]struct {
		address netip.AddrPort
		want    error
	}{
		"its own port":                            {netip.AddrPortFrom(pod, portOf(own)), nil},
		"one of a program that listens to all":    {netip.AddrPortFrom(pod, portOf(everywhere)), errNotListening},
		"the port of another Pod":                 {netip.AddrPortFrom(netip.MustParseAddr("127.66.1.3"), portOf(own)), errNotListening},
		"a port of which half the number is ours": {netip.AddrPortFrom(pod, portOf(own)&0xff), errNotListening},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := CheckListening(test.address); !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}
