package execution

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
)

// nameOverriders adds the names of the overriders that changed a rejected field to the error of the
// member.
func nameOverriders(karmadaWork *workv1alpha1.Work, manifest *unstructured.Unstructured, err error) error {
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return err
	}
	// The full message of the member is used, because newRejectionError may have shortened the
	// message of err.
	text := err.Error()
	rejection := override.Rejection{Message: text}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		rejection.Message = status.Status().Message
		if details := status.Status().Details; details != nil {
			for _, cause := range details.Causes {
				rejection.Fields = append(rejection.Fields, cause.Field)
			}
		}
	}
	overriders := override.ResponsibleOverriders(rejection, override.RecordOf(karmadaWork), manifest)
	if len(overriders) == 0 {
		return err
	}
	return &rejectionError{error: err, message: text + "; the field was changed by " + strings.Join(overriders, ", ")}
}
