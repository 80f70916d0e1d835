package builtin

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func podDisruptionBudget() interpreter.Rules {
	return interpreter.Rules{
		AggregateStatus: aggregateBudget,
		ReflectStatus:   reflectFields("disruptionsAllowed", "expectedPods", "desiredHealthy", "currentHealthy", "disruptedPods"),
		IsHealthy:       isBudgetHealthy,
	}
}

// memberBudget holds the fields of a PodDisruptionBudget's status that are summed.
type memberBudget struct {
	CurrentHealthy     int32                  `json:"currentHealthy"`
	DesiredHealthy     int32                  `json:"desiredHealthy"`
	ExpectedPods       int32                  `json:"expectedPods"`
	DisruptionsAllowed int32                  `json:"disruptionsAllowed"`
	DisruptedPods      map[string]metav1.Time `json:"disruptedPods"`
}

// aggregateBudget sums the counters of all clusters. It prefixes the names of disrupted Pods with their
// cluster's name, so that they are unique.
func aggregateBudget(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	old, err := typed[policyv1.PodDisruptionBudgetStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	status := policyv1.PodDisruptionBudgetStatus{DisruptedPods: map[string]metav1.Time{}}
	err = forEachStatus(items, func(cluster string, reported *memberBudget) {
		status.CurrentHealthy = addInt32(status.CurrentHealthy, reported.CurrentHealthy)
		status.DesiredHealthy = addInt32(status.DesiredHealthy, reported.DesiredHealthy)
		status.ExpectedPods = addInt32(status.ExpectedPods, reported.ExpectedPods)
		status.DisruptionsAllowed = addInt32(status.DisruptionsAllowed, reported.DisruptionsAllowed)
		for pod, since := range reported.DisruptedPods {
			status.DisruptedPods[cluster+"/"+pod] = since
		}
	})
	if err != nil {
		return nil, err
	}
	return replaceStatus(template, &old, &status)
}

func isBudgetHealthy(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	status, err := nested[map[string]any](memberObject.Object, "status")
	if err != nil {
		return false, err
	}
	reader := counterReader{status: status}
	current, desired := reader.read("currentHealthy"), reader.read("desiredHealthy")
	return current >= desired && reader.err == nil, reader.err
}
