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

// unanswered tells that a member refused nothing: it could not be asked, or was not
// able to answer. What it holds is not known then, so what it reported last stands.
func unanswered(failures []error) bool {
	return len(failures) > 0 && !slices.ContainsFunc(failures, answered)
}

func answered(err error) bool {
	var transport *url.Error
	return !errors.As(err, &transport) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) &&
		!apierrors.IsTimeout(err) && !apierrors.IsServerTimeout(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err)
}

// mayExist reports whether a refused create leaves open that the object exists. API
// servers charge quotas, and allocate ports and addresses of Services, before they
// compare names: an object that exists occupies what its own create asks for.
func mayExist(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// told is what an event says about failures in a cluster. How connections end
// varies from try to try; one that is silent is told once.
func told(cluster string, failures []error) error {
	var other *member.IdentityError
	if errors.As(errors.Join(failures...), &other) {
		return other
	}
	if unanswered(failures) {
		return fmt.Errorf("cluster %s %w", cluster, errSilent)
	}
	return errors.Join(failures...)
}

// refusalBytes bounds how much of a member's own words is told.
const refusalBytes = 600

// refusal is what a member answered, in words of a bearable length, with what helps.
type refusal struct {
	error
	text string
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.error }

// refused makes an answer bearable. API servers put the refused value between the
// name of a field and the cause, were it a whole Pod template: both ends count.
func refused(err error, creating bool) error {
	text := err.Error()
	if len(text) > refusalBytes {
		const half = refusalBytes / 2
		text = strings.ToValidUTF8(text[:half], "") + " ... " + strings.ToValidUTF8(text[len(text)-half:], "")
	}
	return &refusal{error: err, text: text + remedy(err, creating)}
}

// remedy is what helps against a refusal, to be put behind it; empty when the
// member's own words say all there is to say.
func remedy(err error, creating bool) string {
	switch {
	case creating && refusedFor(err, "namespaces"):
		return "; a namespace is sent along unless its label " + policyv1alpha1.NamespaceSkipAutoPropagationLabel +
			" or the flag --skipped-propagating-namespaces keeps it back: let it go there, or create it in the cluster"
	case !creating && apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "Forbidden")):
		return "; undo the change, or delete the object in the cluster and it is made anew"
	}
	return ""
}

// refusedFor tells that an error is about an object of this resource that is absent.
func refusedFor(err error, resource string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonNotFound &&
		status.Status().Details != nil && status.Status().Details.Kind == resource
}
