package work

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// Rescale returns the Work with the target's current replicas and otherwise unchanged content, and reports
// whether the replicas changed. Nothing changes if the kind has no rule for replicas (a nil revise), or if an
// override that was applied to the Work may have set the replicas.
func Rescale(stored *workv1alpha1.Work, bound binding.Object, target workv1alpha2.TargetCluster,
	revise func(*unstructured.Unstructured, int64) (*unstructured.Unstructured, error)) (*workv1alpha1.Work, bool, error) {
	hasReplicaOverride := strings.Contains(appliedOverrides(stored), "replicas")
	if revise == nil || hasReplicaOverride || !binding.IsWorkload(bound.BindingSpec()) || len(stored.Spec.Workload.Manifests) != 1 {
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

// appliedOverrides returns the records of the overrides that were applied to the Work, or an empty string.
func appliedOverrides(stored *workv1alpha1.Work) string {
	return stored.Annotations[policyv1alpha1.AppliedClusterOverrides] + stored.Annotations[policyv1alpha1.AppliedOverrides]
}

// RecordedTemplate returns the state of the template that the Works of its binding contain, for clusters
// without a Work, while the binding does not record the template's current state. It returns nil if no Work
// contains the state without changes for its cluster: overrides and divided completions.
func RecordedTemplate(template *unstructured.Unstructured, works []*workv1alpha1.Work) *unstructured.Unstructured {
	for _, each := range works {
		if appliedOverrides(each) != "" || len(each.Spec.Workload.Manifests) != 1 {
			continue
		}
		recorded, err := DecodeManifest(each.Spec.Workload.Manifests[0])
		if err != nil {
			continue
		}
		if _, hasCompletions, _ := unstructured.NestedFieldNoCopy(recorded.Object, "spec", "completions"); hasCompletions {
			continue
		}
		recorded.SetUID(template.GetUID())
		recorded.SetResourceVersion(template.GetResourceVersion())
		return recorded
	}
	return nil
}
