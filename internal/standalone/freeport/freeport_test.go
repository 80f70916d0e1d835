package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestPortIsReservedForItsServer(t *testing.T) {
	returned := map[int]bool{}
	for range 200 {
		port, err := Reserve()
		if err != nil {
			t.Fatal(err)
		}
		if returned[port] {
			t.Fatalf("port %d is returned twice", port)
		}
		returned[port] = true
	}
	for port := range returned {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatalf("the server of a reserved port cannot listen: %v", err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}
