package memberproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/agent"
)

// errIdle is the cause with which a request is canceled if the member has sent no data for too long.
var errIdle = errors.New("the member sent no data")

// slowError is the cause with which a request to all clusters is canceled if the member's response was
// not complete within the limit.
type slowError struct{ limit time.Duration }

func (s slowError) Error() string { return "the response was not complete within " + s.limit.String() }

// newUnavailableError returns the error for a cluster that cannot be reached.
func newUnavailableError(cluster *clusterv1alpha1.Cluster, reason error) error {
	return fanout.NewUnavailableError("cannot reach cluster %q: %v", cluster.Name, reason)
}

// explainError converts a round trip's error to a Status that describes the cause and the remedy. ctx
// is the round trip's context, and idle is its idle timeout.
func explainError(ctx context.Context, cluster *clusterv1alpha1.Cluster, idle time.Duration, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	endpoint := cluster.Spec.APIEndpoint
	var untrusted *tls.CertificateVerificationError
	var slow slowError
	var forbidden *agent.AddressError
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errMemberRemoved):
		return newUnavailableError(cluster, cause)
	case errors.Is(cause, errIdle):
		return fanout.NewStatusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %q (%s) accepted the request and sent no data for %s: its API server hangs or is overloaded; check the conditions of the Cluster, and try again",
			cluster.Name, endpoint, idle)
	case errors.As(cause, &slow):
		return fanout.NewStatusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %q (%s) did not respond completely within %s: its API server or the network is slow or overloaded; check the conditions of the Cluster, and try again or select fewer objects",
			cluster.Name, endpoint, slow.limit)
	case errors.As(err, &forbidden):
		return newUnavailableError(cluster, forbidden)
	case isProxyError(err):
		return newUnavailableError(cluster, fmt.Errorf("%w; check spec.proxyURL and spec.proxyHeader of the Cluster", err))
	case errors.As(err, &untrusted):
		return newUnavailableError(cluster, fmt.Errorf("the certificate of %s is not trusted: %w; %s", endpoint, err, caRemedy(cluster)))
	case isDialError(err):
		return newUnavailableError(cluster, fmt.Errorf("%s does not respond: %w; check that the API server runs, that spec.apiEndpoint is correct, and that the control plane can reach it; a cluster behind a firewall needs spec.proxyURL", endpoint, err))
	}
	return fanout.NewStatusError(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
		"cluster %q (%s) closed the connection: %v; its API server may have restarted: try again", cluster.Name, endpoint, err)
}

func isDialError(err error) bool {
	var operation *net.OpError
	var timeout net.Error
	return errors.As(err, &operation) && operation.Op == "dial" ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func caRemedy(cluster *clusterv1alpha1.Cluster) string {
	ref := cluster.Spec.SecretRef
	if ref == nil {
		return "without spec.secretRef, only certificates that the system trusts are accepted"
	}
	return fmt.Sprintf("key %q of Secret %s/%s must contain the CA of the member", clusterv1alpha1.SecretCADataKey, ref.Namespace, ref.Name)
}
