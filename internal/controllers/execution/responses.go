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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/interpreter"
)

// isUndecided reports whether the pass says nothing about the Work, so that the conditions that
// were reported last stay: no request got a response, or a rule did not run and runs in a later
// pass.
func isUndecided(failures []error) bool {
	return hasNoResponse(failures) || interpreter.IsBusy(errors.Join(failures...))
}

// hasNoResponse reports whether no request got a response that describes an object in the member. In
// that case the state of the member is unknown, so the controller keeps the conditions that it
// reported last.
func hasNoResponse(failures []error) bool {
	return len(failures) > 0 && !slices.ContainsFunc(failures, isResponse)
}

// isResponse reports whether the error is a response that describes an object. The rejection of the
// credentials is not, because the API server rejects them before it looks at the object.
func isResponse(err error) bool {
	if errors.As(err, new(*retainError)) {
		return !errors.Is(err, context.Canceled) // a timeout within it is one of a webhook
	}
	var identityErr *member.IdentityError
	if errors.As(err, &identityErr) {
		return identityErr.Identity.OtherID != "" // otherwise the request was not sent
	}
	var transport *url.Error
	return !errors.As(err, &transport) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err) &&
		!apierrors.IsUnauthorized(err)
}

// mayObjectExist reports whether the object may exist although the request to create it was
// rejected. An API server checks quotas, and allocates ports and addresses of Services, before it
// checks whether the name exists. An existing object can therefore use the quota or port that its
// own create request needs.
func mayObjectExist(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// eventError returns the error for an event about failures in a cluster. It replaces connection
// errors by one constant text, because their texts differ at each attempt, and rejections of the
// credentials by one text for all objects.
func eventError(cluster string, failures []error) error {
	var identityErr *member.IdentityError
	switch {
	case errors.As(errors.Join(failures...), &identityErr):
		return identityErr
	case !hasNoResponse(failures):
		return errors.Join(failures...)
	case slices.ContainsFunc(failures, apierrors.IsUnauthorized):
		return fmt.Errorf("cluster %s %w", cluster, errCredentialsRejected)
	default:
		return fmt.Errorf("cluster %s %w", cluster, errClusterNotResponding)
	}
}

// maxRejectionBytes is the maximum length of a message of a member in an error, in bytes.
const maxRejectionBytes = 600

// rejectionError is an error of a member with a shortened message and a hint for the user.
type rejectionError struct {
	error
	message string
}

func (r *rejectionError) Error() string { return r.message }
func (r *rejectionError) Unwrap() error { return r.error }

// newRejectionError shortens the message of a member and adds a hint. It keeps both ends of the
// message, because API servers write the rejected value, which may be a whole Pod template, between
// the name of the field and the cause.
func newRejectionError(err error, creating bool) error {
	text := err.Error()
	if len(text) > maxRejectionBytes {
		const half = maxRejectionBytes / 2
		text = strings.ToValidUTF8(text[:half], "") + " ... " + strings.ToValidUTF8(text[len(text)-half:], "")
	}
	return &rejectionError{error: err, message: text + rejectionHint(err, creating)}
}

// explainRejection adds to the error of a member the overriders that changed a rejected field, and
// the Services that use a requested node port.
func explainRejection(ctx context.Context, d *delivery, manifest *unstructured.Unstructured, rejection error) error {
	err := nameOverriders(d.work, manifest, rejection)
	if hint := describeNodePortClash(ctx, d, manifest, rejection); hint != "" {
		return &rejectionError{error: err, message: err.Error() + hint}
	}
	return err
}

// rejectionHint returns a hint to append to a rejection. It returns an empty string if the message
// of the member needs no hint.
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

// isNotFoundOf reports whether an error means that an object of this resource was not found.
func isNotFoundOf(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound &&
		status.Status().Details != nil && status.Status().Details.Kind == resource
}
