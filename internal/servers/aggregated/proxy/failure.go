package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// errSilent ends a request that a member left without a word for too long.
var errSilent = errors.New("the member is silent")

// errSlow ends a request to all clusters whose member did not answer in time, whatever
// it sent meanwhile.
var errSlow = errors.New("the member is slow")

// failure is an answer of this server: something is wrong on the way to a cluster.
func failure(code int32, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// soon tells clients to try again in a second, which most do on their own.
func soon(status *apierrors.StatusError) *apierrors.StatusError {
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return status
}

// unavailable tells that there is no way to a cluster, and why.
func unavailable(cluster *clusterv1alpha1.Cluster, reason error) error {
	return failure(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "no way to cluster %q: %v", cluster.Name, reason)
}

func noEndpoint(cluster *clusterv1alpha1.Cluster) error {
	remedy := "set it to the URL of the member's API server"
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		remedy = "start the agent with --cluster-api-endpoint"
	}
	return unavailable(cluster, fmt.Errorf("spec.apiEndpoint is empty: %s", remedy))
}

func noImpersonator(cluster *clusterv1alpha1.Cluster) error {
	remedy := "join the cluster again"
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		remedy = "start the agent with KubeImpersonator among its --report-secrets"
	}
	return unavailable(cluster, fmt.Errorf("spec.impersonatorSecretRef is empty: %s", remedy))
}

// crowded tells that a member has as much under way as may be.
func crowded(cluster *clusterv1alpha1.Cluster, limit int, what string) error {
	return soon(failure(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"%d %s are under way to cluster %q, which is the limit of this server: end some, or try again later", limit, what, cluster.Name))
}

// explain turns the failure of a round trip into what its user can act on. The
// context is that of the round trip.
func explain(ctx context.Context, cluster *clusterv1alpha1.Cluster, limits limits, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	endpoint := cluster.Spec.APIEndpoint
	var untrusted *tls.CertificateVerificationError
	var refused *proxyError
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return unavailable(cluster, cause)
	case errors.Is(cause, errSilent):
		return failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %q (%s) accepted the request and was silent for %s: its API server hangs or is overloaded; see the conditions of the Cluster, and try again",
			cluster.Name, endpoint, limits.silence)
	case errors.Is(cause, errSlow):
		return failure(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %q (%s) did not answer completely within %s: its API server or the way there hangs, is slow or overloaded; see the conditions of the Cluster, and try again or select less",
			cluster.Name, endpoint, limits.answer)
	case errors.As(err, &refused):
		return unavailable(cluster, fmt.Errorf("%w; see spec.proxyURL and spec.proxyHeader of the Cluster", err))
	case errors.As(err, &untrusted):
		return unavailable(cluster, fmt.Errorf("the certificate of %s is not trusted: %w; %s", endpoint, err, whereCAIs(cluster)))
	case isDial(err):
		return unavailable(cluster, fmt.Errorf("%s does not answer: %w; does the API server run, is spec.apiEndpoint right, and is there a way there from the control plane? A cluster behind a firewall needs spec.proxyURL", endpoint, err))
	}
	return failure(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
		"cluster %q (%s) broke the connection off: %v; it may have restarted: try again", cluster.Name, endpoint, err)
}

func isDial(err error) bool {
	var operation *net.OpError
	var timeout net.Error
	return errors.As(err, &operation) && operation.Op == "dial" ||
		errors.As(err, &timeout) && timeout.Timeout()
}

func whereCAIs(cluster *clusterv1alpha1.Cluster) string {
	ref := cluster.Spec.SecretRef
	if ref == nil {
		return "without spec.secretRef only certificates that the system trusts are accepted"
	}
	return fmt.Sprintf("key %q of Secret %s/%s must hold the CA of the member", clusterv1alpha1.SecretCADataKey, ref.Namespace, ref.Name)
}
