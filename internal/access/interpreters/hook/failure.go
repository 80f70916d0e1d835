package hook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// describe returns the error of a connection for users. Its text is the same for each call with the
// same cause: it has neither local ports nor the current time.
func describe(err error, hasBundle bool) error {
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	var operation *net.OpError
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return describeCertificate(certificate, hasBundle)
	case errors.As(err, &notTLS):
		return errors.New("the server does not speak TLS: serve the webhook with TLS, or correct the port")
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("there is no host %q: correct the address, or create the DNS record", excerpt(lookup.Name))
	case errors.As(err, &lookup):
		return fmt.Errorf("looking up the host %q: %s: check the DNS server of this component", excerpt(lookup.Name), describeLookup(lookup))
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("connection refused: start the webhook, or correct the address")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return errors.New("the server closed the connection before its response was complete: check the logs of the webhook")
	case errors.As(err, &operation):
		return fmt.Errorf("%s: %w: check the address and the webhook", operation.Op, operation.Err)
	}
	// The text can have a part of the response, for example a malformed first line.
	return fmt.Errorf("%s: check the address and the webhook", excerpt(err.Error()))
}

// describeLookup returns why a lookup failed, without the local port that the text of the error has.
func describeLookup(failed *net.DNSError) string {
	if failed.IsTimeout {
		return "no response in time"
	}
	return excerpt(failed.Err[strings.LastIndex(failed.Err, ": ")+1:])
}

// describeCertificate returns the error for a certificate that does not prove the identity of the
// server.
func describeCertificate(failed *tls.CertificateVerificationError, hasBundle bool) error {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(failed, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate of the webhook is valid from %s to %s only: renew it, or correct the clock",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(failed, &unknown) && hasBundle:
		return errors.New("the certificate of the webhook is not signed by an authority in clientConfig.caBundle: set caBundle to the authority that signed it")
	case errors.As(failed, &unknown):
		return errors.New("the certificate of the webhook is signed by an authority that this system does not know: set clientConfig.caBundle to that authority")
	case errors.As(failed, &name):
		return fmt.Errorf("the certificate of the webhook is for another name: %s: issue a certificate for %s", excerpt(name.Error()),
			excerpt(name.Host))
	}
	return fmt.Errorf("the certificate of the webhook is not accepted: %w: issue another one", failed.Err)
}
