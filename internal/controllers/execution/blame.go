package execution

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
)

// blameOverrides names the overriders that changed a field which the member refuses.
func blameOverrides(of *workv1alpha1.Work, manifest *unstructured.Unstructured, err error) error {
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return err
	}
	applied := override.Applied{
		Cluster:    of.Annotations[policyv1alpha1.AppliedClusterOverrides],
		Namespaced: of.Annotations[policyv1alpha1.AppliedOverrides],
	}
	// The words of the member, which refused may have shortened.
	text := err.Error()
	said := override.Refusal{Text: text}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		said.Text = status.Status().Message
		if details := status.Status().Details; details != nil {
			for _, cause := range details.Causes {
				said.Fields = append(said.Fields, cause.Field)
			}
		}
	}
	blamed := override.Blame(said, applied, manifest)
	if len(blamed) == 0 {
		return err
	}
	return &refusal{error: err, text: text + "; the field was changed by " + strings.Join(blamed, ", ")}
}
