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

// Advice returns advice for the user about a failed request to the named cluster. It returns an empty string
// if the error needs no explanation.
func Advice(err error, clusterName string) string {
	var (
		requestError *url.Error
		notTLS       tls.RecordHeaderError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case IsCertificateUntrusted(err):
		return fmt.Sprintf("The certificate of %s is not trusted: check certificate-authority and server in its kubeconfig.", clusterName)
	case errors.As(err, &notTLS):
		return fmt.Sprintf("The server of %s does not speak TLS: check the scheme of server in its kubeconfig.", clusterName)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("The credentials for %s are wrong or have expired: get a new kubeconfig.", clusterName)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "The namespace is being deleted: wait until it is gone and try again."
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("The user for %s lacks the permission named above: grant it, or use the credentials of a cluster-admin.", clusterName)
	case apierrors.ReasonForError(err) == "" && errors.As(err, &requestError):
		return fmt.Sprintf("No response from %s: check that the API server is running at this address and that this machine can reach it.",
			clusterName)
	}
	return ""
}

// IsCertificateUntrusted reports whether the request failed because the client could not verify the server's
// certificate.
func IsCertificateUntrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		unknown      x509.UnknownAuthorityError
	)
	return errors.As(err, &verification) || errors.As(err, &unknown)
}
