package memberproxy

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
	"karmada.io/karmada/internal/domain/agent"
)

// errIdle is the cause of a request that is canceled because the member sent no data for too long.
var errIdle = errors.New("the member sent no data")

// errSlow is the cause of a canceled request to all clusters: the response of the member was not
// complete in time.
var errSlow = errors.New("the response of the member was not complete in time")

// newStatusError returns an error that this server reports. Errors of members are not converted.
func newStatusError(code int32, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// withRetryAfter adds a Retry-After of one second, which most clients follow.
func withRetryAfter(status *apierrors.StatusError) *apierrors.StatusError {
	status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return status
}

// newUnavailableError returns the error for a cluster that cannot be reached.
func newUnavailableError(cluster *clusterv1alpha1.Cluster, reason error) error {
	return newStatusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "cannot reach cluster %q: %v", cluster.Name, reason)
}

func missingEndpoint(cluster *clusterv1alpha1.Cluster) error {
	remedy := "set it to the URL of the member's API server"
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		remedy = "start the agent with --cluster-api-endpoint"
	}
	return newUnavailableError(cluster, fmt.Errorf("spec.apiEndpoint is empty: %s", remedy))
}

func missingImpersonator(cluster *clusterv1alpha1.Cluster) error {
	remedy := "join the cluster again"
	if cluster.Spec.SyncMode == clusterv1alpha1.Pull {
		remedy = "start the agent with --report-secrets including KubeImpersonator"
	}
	return newUnavailableError(cluster, fmt.Errorf("spec.impersonatorSecretRef is empty: %s", remedy))
}

// memberBudgetExceeded returns the error for the exhausted budget of a member.
func memberBudgetExceeded(cluster *clusterv1alpha1.Cluster, limit int, budget string) error {
	return withRetryAfter(newStatusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests,
		"%d %s are in progress for cluster %q, which is the limit of this server: end some, or try again later", limit, budget, cluster.Name))
}

// explainError converts an error of a round trip to a Status that names the cause and the
// remedy. ctx is the context of the round trip.
func explainError(ctx context.Context, cluster *clusterv1alpha1.Cluster, limits timeouts, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	endpoint := cluster.Spec.APIEndpoint
	var untrusted *tls.CertificateVerificationError
	var proxyErr *proxyError
	var forbidden *agent.AddressError
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errMemberRemoved):
		return newUnavailableError(cluster, cause)
	case errors.Is(cause, errIdle):
		return newStatusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %q (%s) accepted the request and sent no data for %s: its API server hangs or is overloaded; check the conditions of the Cluster, and try again",
			cluster.Name, endpoint, limits.idle)
	case errors.Is(cause, errSlow):
		return newStatusError(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"cluster %q (%s) did not respond completely within %s: its API server or the network is slow or overloaded; check the conditions of the Cluster, and try again or select fewer objects",
			cluster.Name, endpoint, limits.list)
	case errors.As(err, &forbidden):
		return newUnavailableError(cluster, forbidden)
	case errors.As(err, &proxyErr):
		return newUnavailableError(cluster, fmt.Errorf("%w; check spec.proxyURL and spec.proxyHeader of the Cluster", err))
	case errors.As(err, &untrusted):
		return newUnavailableError(cluster, fmt.Errorf("the certificate of %s is not trusted: %w; %s", endpoint, err, caRemedy(cluster)))
	case isDialError(err):
		return newUnavailableError(cluster, fmt.Errorf("%s does not respond: %w; check that the API server runs, that spec.apiEndpoint is correct, and that the control plane can reach it; a cluster behind a firewall needs spec.proxyURL", endpoint, err))
	}
	return newStatusError(http.StatusBadGateway, metav1.StatusReasonServiceUnavailable,
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
