package work

import (
	"encoding/json"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

var jobKind = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

// IsFinishedJob reports whether the identifier is that of a Job whose last reported status is
// Complete or Failed. Such a Job is not created again when it is deleted in the member, because it
// would be executed a second time.
func IsFinishedJob(statuses []workv1alpha1.ManifestStatus, identifier workv1alpha1.ResourceIdentifier) bool {
	if (schema.GroupKind{Group: identifier.Group, Kind: identifier.Kind}) != jobKind {
		return false
	}
	reported := slices.IndexFunc(statuses, func(status workv1alpha1.ManifestStatus) bool { return status.Identifier == identifier })
	if reported < 0 || statuses[reported].Status == nil {
		return false
	}
	var status batchv1.JobStatus
	if err := json.Unmarshal(statuses[reported].Status.Raw, &status); err != nil {
		return false // an unreadable status proves nothing
	}
	return slices.ContainsFunc(status.Conditions, func(condition batchv1.JobCondition) bool {
		return (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) && condition.Status == corev1.ConditionTrue
	})
}

// WasExecuted reports whether a manifest is that of a finished Job that must not be executed again.
// With RecreateFinishedJobAnnotation on the manifest, every Job that is deleted in the member is
// created again.
func WasExecuted(karmadaWork *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	if manifest.GroupVersionKind().GroupKind() != jobKind || manifest.GetAnnotations()[workv1alpha1.RecreateFinishedJobAnnotation] == "true" {
		return false
	}
	identifier, err := IdentifyManifest(karmadaWork.Spec.Workload.Manifests, manifest)
	return err == nil && IsFinishedJob(karmadaWork.Status.ManifestStatuses, identifier)
}
