package member

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"regexp"
	"syscall"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ErrorCause describes why a request to a member failed. It returns the same text for the same cause, so
// that a status does not change at every retry.
func ErrorCause(err error) string { return connectionCause(err) }

// connectionCause describes why a member is not reachable. It returns the same text for the same
// cause, because a text with the local port or the current time would change a condition at every
// probe.
func connectionCause(err error) string {
	if text := certificateCause(err); text != "" {
		return text
	}
	var lookup *net.DNSError
	var number syscall.Errno
	switch {
	case errors.As(err, &lookup):
		return "its host name " + lookup.Name + " cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return "it did not respond in time"
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), utilnet.IsHTTP2ConnectionLost(err):
		return "it closed the connection"
	default:
		return localAddressPattern.ReplaceAllString(err.Error(), "")
	}
}

// localAddressPattern matches the local end of a connection in an error text.
var localAddressPattern = regexp.MustCompile(`\S+:\d+->`)

func certificateCause(err error) string {
	var invalid x509.CertificateInvalidError
	var unknownAuthority x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate is not valid at the present time"
	case errors.As(err, &unknownAuthority):
		return "its certificate is not signed by the CA that the Cluster trusts"
	case errors.As(err, &wrongHost):
		return "its certificate is not for host " + wrongHost.Host
	case errors.As(err, &unverified):
		return "its certificate is not trusted: " + unverified.Err.Error()
	default:
		return ""
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
