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

// IsFinishedJob reports whether the identifier belongs to a Job whose last reported status is Complete
// or Failed. If such a Job is deleted in the member, Karmada does not create it again, because it would
// run a second time.
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

// WasExecuted reports whether the manifest belongs to a finished Job that must not run again. The
// annotation RecreateFinishedJobAnnotation on the manifest permits Karmada to create the Job again.
func WasExecuted(karmadaWork *workv1alpha1.Work, manifest *unstructured.Unstructured) bool {
	if manifest.GroupVersionKind().GroupKind() != jobKind || manifest.GetAnnotations()[workv1alpha1.RecreateFinishedJobAnnotation] == "true" {
		return false
	}
	identifier, err := IdentifyManifest(karmadaWork.Spec.Workload.Manifests, manifest)
	return err == nil && IsFinishedJob(karmadaWork.Status.ManifestStatuses, identifier)
}
