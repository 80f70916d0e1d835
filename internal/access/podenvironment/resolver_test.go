package podenvironment

import (
	"net"
	"testing"
)

func TestPodResolverAsksDNSServerOfPod(t *testing.T) {
	previous := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = previous })
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	t.Setenv(DNSServerVariable, server.LocalAddr().String())
	t.Setenv(PodAddressVariable, "127.70.1.2")
	UsePodResolver()
	lookup := make(chan error, 1)
	go func() {
		_, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip4", "karmada-webhook.karmada-system.svc.")
		lookup <- err
	}()
	question := make([]byte, 512)
	n, from, err := server.ReadFrom(question)
	if err != nil {
		t.Fatal(err)
	}
	if source, ok := from.(*net.UDPAddr); !ok || source.IP.String() != "127.70.1.2" {
		t.Errorf("the question came from %v, want the address of the Pod", from)
	}
	// The same message as a response with the code 3 says that the name does not exist.
	question[2], question[3] = question[2]|0x84, 0x83
	if _, err := server.WriteTo(question[:n], from); err != nil {
		t.Fatal(err)
	}
	if err := <-lookup; err == nil {
		t.Error("the name was resolved by another server")
	}
}

func TestProcessWithoutNodeKeepsItsResolver(t *testing.T) {
	previous := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = previous })
	for _, value := range []string{"", "no address"} {
		t.Setenv(DNSServerVariable, value)
		UsePodResolver()
		if net.DefaultResolver != previous {
			t.Errorf("%q replaced the resolver", value)
		}
	}
}
