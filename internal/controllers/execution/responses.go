package execution

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/member"
)

// isUnanswered reports whether no request got a response from the member. The state of the member
// is unknown then, so the last reported conditions stay.
func isUnanswered(failures []error) bool {
	return len(failures) > 0 && !slices.ContainsFunc(failures, isResponse)
}

func isResponse(err error) bool {
	var transport *url.Error
	return !errors.As(err, &transport) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err)
}

// mayObjectExist reports whether the object may exist although its create request was rejected.
// API servers charge quotas, and allocate ports and addresses of Services, before they compare
// names: an existing object occupies what its own create request needs.
func mayObjectExist(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// eventError returns the error for an event about failures in a cluster. The texts of connection
// errors differ from try to try; they are replaced by one constant text.
func eventError(cluster string, failures []error) error {
	var identityErr *member.IdentityError
	if errors.As(errors.Join(failures...), &identityErr) {
		return identityErr
	}
	if isUnanswered(failures) {
		return fmt.Errorf("cluster %s %w", cluster, errClusterNotResponding)
	}
	return errors.Join(failures...)
}

// maxRejectionBytes limits the length of a member's message in our errors.
const maxRejectionBytes = 600

// rejectionError is an error of a member with a shortened message and a hint for the user.
type rejectionError struct {
	error
	message string
}

func (r *rejectionError) Error() string { return r.message }
func (r *rejectionError) Unwrap() error { return r.error }

// newRejectionError shortens the message of a member and adds a hint. API servers put the
// rejected value, which may be a whole Pod template, between the name of the field and the
// cause. Both ends are kept.
func newRejectionError(err error, creating bool) error {
	text := err.Error()
	if len(text) > maxRejectionBytes {
		const half = maxRejectionBytes / 2
		text = strings.ToValidUTF8(text[:half], "") + " ... " + strings.ToValidUTF8(text[len(text)-half:], "")
	}
	return &rejectionError{error: err, message: text + rejectionHint(err, creating)}
}

// rejectionHint returns a hint that is appended to a rejection; empty if the message of the
// member suffices.
func rejectionHint(err error, creating bool) string {
	switch {
	case creating && isNotFoundOf(err, "namespaces"):
		return "; a namespace is propagated unless its label " + policyv1alpha1.NamespaceSkipAutoPropagationLabel +
			" or the flag --skipped-propagating-namespaces excludes it: propagate it, or create it in the cluster"
	case !creating && apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "Forbidden")):
		return "; undo the change, or delete the object in the cluster, and Karmada creates it again"
	}
	return ""
}

// isNotFoundOf reports whether an error says that an object of this resource was not found.
func isNotFoundOf(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound &&
		status.Status().Details != nil && status.Status().Details.Kind == resource
}
