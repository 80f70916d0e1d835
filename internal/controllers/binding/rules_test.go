package binding

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/access/interpreters/rulestest"
	"karmada.io/karmada/internal/domain/interpreter"
)

// revising returns a rule that stores the replicas in a field of the template.
func revising(field string) interpreter.Rules {
	return interpreter.Rules{ReviseReplicas: func(_ context.Context, template *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error) {
		revised := template.DeepCopy()
		return revised, unstructured.SetNestedField(revised.Object, replicas, "spec", field)
	}}
}

func TestChangedRuleReachesWorks(t *testing.T) {
	deployments := appsv1.SchemeGroupVersion.WithKind("Deployment")
	tests := map[string]struct {
		kind   schema.GroupVersionKind
		rules  interpreter.Rules
		queued []string
		writes []string
	}{
		"another rule of the kind":        {deployments, revising("minReadySeconds"), []string{"shop/web-deployment"}, []string{"update *v1alpha1.Work"}},
		"a rule that gives the same Work": {deployments, revising("replicas"), []string{"shop/web-deployment"}, nil},
		"a rule of another kind":          {corev1.SchemeGroupVersion.WithKind("Pod"), revising("replicas"), nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := bindingTo("m1")
			bound.Spec.Replicas, bound.Spec.Clusters[0].Replicas = 3, 3
			w, table := newFixture(t, cluster("m1"), deployment(), bound), &interpreters.Table{}
			w.rules = table
			table.Set(deployments, revising("replicas"))
			w.reconcile()
			var queued []string
			for _, request := range rulestest.QueuedBy(t, w.onRules, func() { table.Set(test.kind, test.rules) }) {
				queued = append(queued, request.String())
			}
			if diff := cmp.Diff(test.queued, queued); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
			_, writes := w.reconcile()
			if diff := cmp.Diff(test.writes, writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}
