package work

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// divideCompletions sets a Job's completions to the share of one target. It divides the template's
// completions over all targets in proportion to their replicas, so that the shares add up to the
// template's completions. It changes nothing if no target has replicas or the replicas are not divided.
func divideCompletions(manifest *unstructured.Unstructured, spec *workv1alpha2.ResourceBindingSpec, target, tieUID string) error {
	if !hasDividedCompletions(spec, manifest.GroupVersionKind()) {
		return nil
	}
	completions, found, err := unstructured.NestedInt64(manifest.Object, "spec", "completions")
	if err != nil {
		return fmt.Errorf("reading the completions of the Job: %w", err)
	}
	if !found {
		return nil
	}
	part, divided := completionsShare(completions, binding.TargetClusters(spec), target, tieUID)
	if !divided {
		return nil
	}
	if err := unstructured.SetNestedField(manifest.Object, part, "spec", "completions"); err != nil {
		return fmt.Errorf("writing the completions of the Job: %w", err)
	}
	return nil
}

// hasDividedCompletions reports whether the completions of templates of the given kind are divided.
func hasDividedCompletions(spec *workv1alpha2.ResourceBindingSpec, kind schema.GroupVersionKind) bool {
	return kind.GroupKind() == jobKind && spec.Replicas > 0 && binding.IsDivided(spec)
}

// completionsShare returns the given target's share of a Job's completions. divided is false if no
// target has replicas.
func completionsShare(
	completions int64, targets []workv1alpha2.TargetCluster, target, tieUID string,
) (part int64, divided bool) {
	parties := make([]placement.WeightedCluster, 0, len(targets))
	weight := int64(0)
	for _, each := range targets {
		parties = append(parties, placement.WeightedCluster{Name: each.Name, Weight: int64(each.Replicas)})
		weight += int64(each.Replicas)
	}
	if weight == 0 {
		return 0, false
	}
	for _, share := range placement.Divide(completions, parties, tieUID) {
		if share.Name == target {
			return share.Replicas, true
		}
	}
	return 0, false
}
