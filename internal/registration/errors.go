package registration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Advice is what to do about an error of a request to a side, nothing if the
// error says it all.
func Advice(err error, side string) string {
	var (
		noAnswer *url.Error
		notTLS   tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case IsUntrusted(err):
		return fmt.Sprintf("The certificate of %s is not trusted: check certificate-authority and server in its kubeconfig.", side)
	case errors.As(err, &notTLS):
		return fmt.Sprintf("The server of %s does not speak TLS: check the scheme of server in its kubeconfig.", side)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("The credentials for %s are wrong or have expired: get a new kubeconfig.", side)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "The namespace is being deleted: wait until it is gone and try again."
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("The user for %s lacks the right named above: grant it, or use the credentials of a cluster-admin.", side)
	case apierrors.ReasonForError(err) == "" && errors.As(err, &noAnswer):
		return fmt.Sprintf("No answer from %s: check that the API server is running at this address and that this machine can reach it.", side)
	}
	return ""
}

// IsUntrusted tells that the certificate of the server was refused.
func IsUntrusted(err error) bool {
	var (
		refused *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
	)
	return errors.As(err, &refused) || errors.As(err, &unknown)
}
