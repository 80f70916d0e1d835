package interpreters

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

var deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")

// fixedReplicas returns rules that interpret each template as having n replicas.
func fixedReplicas(n int32) interpreter.Rules {
	return interpreter.Rules{Replicas: func(context.Context, *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
		return n, nil, nil
	}}
}

func newDeployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"replicas": int64(2), "template": map[string]any{"spec": map[string]any{
			"priorityClassName": "gold",
			"containers":        []any{map[string]any{"name": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
		}}},
	}}
}

func TestPriorityClassRequiresTheGate(t *testing.T) {
	tests := map[string]struct {
		options Options
		want    string
	}{
		"without the gate, requirements have no priority class": {},
		"with the gate, requirements have the priority class":   {Options{ResourceQuotaEstimate: true}, "gold"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, requirements, err := New(test.options).Rules(deployments).Replicas(t.Context(), newDeployment())
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if requirements != nil {
				got = requirements.PriorityClassName
			}
			if got != test.want {
				t.Errorf("priority class %q, want %q", got, test.want)
			}
		})
	}
}

func TestSourcesHavePrecedenceOverBuiltInRules(t *testing.T) {
	table := &Table{}
	rules := New(Options{Sources: []interpreter.Source{table}, Now: time.Now})
	replicas := func() int32 {
		got, _, err := rules.Rules(deployments).Replicas(t.Context(), newDeployment())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	var got []int32
	got = append(got, replicas())
	table.Set(deployments, fixedReplicas(7))
	got = append(got, replicas())
	if rules.Rules(deployments).AggregateStatus == nil {
		t.Error("an operation without another rule has lost its built-in rule")
	}
	table.Set(schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, fixedReplicas(9))
	got = append(got, replicas())
	table.Delete(deployments)
	got = append(got, replicas())
	if diff := cmp.Diff([]int32{2, 7, 7, 2}, got); diff != "" {
		t.Errorf("replicas (-want +got):\n%s", diff)
	}
}
