package proxying

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"karmada.io/karmada/internal/domain/conditions"
)

// maxWarnings limits the number of Warning headers of a response.
const maxWarnings = 20

// warnings are the clusters that are missing in a response, or whose objects may be outdated, with
// the reason. The keys are the names of the clusters.
type warnings map[string]string

// add adds the reason for a cluster. The first reason counts.
func (w warnings) add(cluster, reason string) {
	if _, known := w[cluster]; !known {
		w[cluster] = reason
	}
}

// write adds a Warning header for each cluster, in the order of their names.
func (w warnings) write(to http.ResponseWriter) {
	names := make([]string, 0, len(w))
	for cluster := range w {
		names = append(names, cluster)
	}
	slices.Sort(names)
	for i, cluster := range names {
		text := fmt.Sprintf("cluster %q: %s", cluster, w[cluster])
		if i == maxWarnings-1 && len(names) > maxWarnings {
			text = "further clusters with problems: " + conditions.LimitMessage(strings.Join(names[i:], ", "))
		}
		text = strings.Join(strings.Fields(conditions.LimitMessage(conditions.ToPrintable(text))), " ")
		if header, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			to.Header().Add("Warning", header)
		}
		if i == maxWarnings-1 {
			return
		}
	}
}

// newError returns an error with a status code.
func newError(code int32, reason metav1.StatusReason, format string, args ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

// newUnavailable returns the error for clusters that do not answer.
func newUnavailable(format string, args ...any) *apierrors.StatusError {
	err := newError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, format, args...)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// responseError returns the Status of an error response of a cluster.
func responseError(cluster string, response *http.Response, body []byte) *apierrors.StatusError {
	status := metav1.Status{}
	if json.Unmarshal(body, &status) != nil || status.Message == "" {
		return newError(int32(response.StatusCode), metav1.StatusReasonUnknown, "cluster %q returns %s", cluster, response.Status)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(response.StatusCode), Reason: status.Reason, Details: status.Details,
		Message: fmt.Sprintf("cluster %q: %s", cluster, conditions.LimitMessage(conditions.ToPrintable(status.Message))),
	}}
}

// failsRequest reports whether an error of one cluster concerns the whole request, because the
// request is wrong or its position in the list is lost.
func failsRequest(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsNotAcceptable(err)
}

// reasonOf returns an error as the reason in a warning, without the name of the cluster at its
// begin.
func reasonOf(cluster string, err error) string {
	var status apierrors.APIStatus
	text := err.Error()
	if errors.As(err, &status) {
		text = status.Status().Message
	}
	return strings.TrimPrefix(text, fmt.Sprintf("cluster %q: ", cluster))
}
