package member

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestConnectionCauseIsStable(t *testing.T) {
	within := func(err error) error { return &url.Error{Op: "Get", URL: "https://10.0.0.1:6443/readyz", Err: err} }
	reset := func(port int) error {
		return within(&net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: port}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6443},
			Err: os.NewSyscallError("read", syscall.ECONNRESET),
		})
	}
	tests := map[string]struct {
		err  error
		want string
	}{
		"a refused connection":              {within(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "connection refused"},
		"a connection reset from a port":    {reset(40001), "connection reset by peer"},
		"one reset from another port":       {reset(40002), "connection reset by peer"},
		"a host that DNS does not know":     {within(&net.DNSError{Name: "member1.example", Err: "no such host"}), "its host name member1.example cannot be resolved"},
		"a request that timed out":          {within(context.DeadlineExceeded), "it did not respond in time"},
		"a connection that was closed":      {within(io.EOF), "it closed the connection"},
		"a certificate that has expired":    {within(x509.CertificateInvalidError{Reason: x509.Expired, Detail: time.Now().String()}), "its certificate is not valid at the present time"},
		"a certificate of another CA":       {within(x509.UnknownAuthorityError{}), "its certificate is not signed by the CA that the Cluster trusts"},
		"a certificate for another host":    {within(x509.HostnameError{Host: "10.0.0.1", Certificate: &x509.Certificate{}}), "its certificate is not for host 10.0.0.1"},
		"an unknown error with our address": {errors.New("write tcp 10.0.0.9:40001->10.0.0.1:6443: odd"), "write tcp 10.0.0.1:6443: odd"},
		"a wrapped error":                   {fmt.Errorf("asking: %w", within(syscall.EHOSTUNREACH)), "no route to host"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := connectionCause(test.err); got != test.want {
				t.Errorf("cause %q, want %q", got, test.want)
			}
		})
	}
}
