package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// Rescale returns the Work with the target's current replicas and otherwise unchanged content, and reports
// whether the replicas changed. If override policies were applied to the Work, or the kind has no rule
// for replicas (a nil revise), nothing changes, because the overrides may have set the replicas.
func Rescale(stored *workv1alpha1.Work, bound binding.Object, target workv1alpha2.TargetCluster,
	revise func(*unstructured.Unstructured, int64) (*unstructured.Unstructured, error)) (*workv1alpha1.Work, bool, error) {
	isOverridden := stored.Annotations[policyv1alpha1.AppliedClusterOverrides] != "" || stored.Annotations[policyv1alpha1.AppliedOverrides] != ""
	if revise == nil || isOverridden || !binding.IsWorkload(bound.BindingSpec()) || len(stored.Spec.Workload.Manifests) != 1 {
		return stored, false, nil
	}
	manifest, err := DecodeManifest(stored.Spec.Workload.Manifests[0])
	if err != nil {
		return nil, false, fmt.Errorf("decoding Work %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	scaled, err := revise(manifest.DeepCopy(), int64(target.Replicas))
	if err != nil {
		return nil, false, fmt.Errorf("setting %d replicas for cluster %q: %w", target.Replicas, target.Name, err)
	}
	if jsonedit.EqualFields(manifest.Object, scaled.Object) {
		return stored, false, nil
	}
	encoded, err := EncodeManifest(scaled)
	if err != nil {
		return nil, false, err
	}
	rescaled := stored.DeepCopy()
	rescaled.Spec.Workload.Manifests = []workv1alpha1.Manifest{encoded}
	return rescaled, true, nil
}
