package work

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// preservedState returns the labels that pass an evicted application's state to its new target. The
// state is passed only if it is certain which target must receive it: there is a single target, this
// target did not run the application before the last eviction, and the application no longer exists in
// the old cluster.
//
// preservedState returns an error if a value is not a valid label value, because otherwise the
// application would start without its state and the user would not notice.
func preservedState(spec *workv1alpha2.ResourceBindingSpec, target string) (map[string]string, error) {
	tasks := spec.GracefulEvictionTasks
	if len(tasks) == 0 || len(binding.TargetClusters(spec)) != 1 {
		return nil, nil
	}
	last := tasks[len(tasks)-1]
	if last.PurgeMode != policyv1alpha1.PurgeModeDirectly || slices.Contains(last.ClustersBeforeFailover, target) {
		return nil, nil
	}
	for _, label := range slices.Sorted(maps.Keys(last.PreservedLabelState)) {
		if problems := validation.IsValidLabelValue(last.PreservedLabelState[label]); len(problems) > 0 {
			return nil, fmt.Errorf(
				"passing on the state preserved from cluster %q: label %q cannot have the value %q: %s; let the jsonPath of the rule select a shorter text",
				last.FromCluster, label, last.PreservedLabelState[label], strings.Join(problems, ", "))
		}
	}
	return last.PreservedLabelState, nil
}
