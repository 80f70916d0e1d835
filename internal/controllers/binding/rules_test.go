package binding

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop/looptest"
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
			for _, request := range looptest.QueuedBy(t, w.newRulesSource, func() { table.Set(test.kind, test.rules) }) {
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

// The descheduler lowers the replicas of a target to 0. Only the scheduler removes the target.
func TestTargetWithoutReplicasKeepsItsWork(t *testing.T) {
	bound := bindingTo("m1", "m2")
	bound.Spec.Replicas, bound.Spec.Clusters[0].Replicas, bound.Spec.Clusters[1].Replicas = 5, 3, 2
	w, table := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bound), &interpreters.Table{}
	table.Set(appsv1.SchemeGroupVersion.WithKind("Deployment"), revising("replicas"))
	w.rules = table
	w.reconcile()
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 0 })
	if _, writes := w.reconcile(); !cmp.Equal([]string{"update *v1alpha1.Work"}, writes) {
		t.Errorf("writes %v", writes)
	}
	if diff := cmp.Diff(map[string]int64{"m1": 0, "m2": 2}, w.workReplicas()); diff != "" {
		t.Errorf("replicas of the Works (-want +got):\n%s", diff)
	}
}

// workReplicas returns the replicas in the Works by cluster.
func (f *fixture) workReplicas() map[string]int64 {
	f.t.Helper()
	replicas := map[string]int64{}
	for _, each := range f.works() {
		manifest, err := work.DecodeManifest(each.Spec.Workload.Manifests[0])
		if err != nil {
			f.t.Fatal(err)
		}
		name, _ := work.ClusterOf(each.Namespace)
		replicas[name], _, _ = unstructured.NestedInt64(manifest.Object, "spec", "replicas")
	}
	return replicas
}

// A rule for replicas that is added later finds placements without replicas. The workloads in the
// members must not stop until the scheduler assigns the replicas.
func TestNewRuleForReplicasDoesNotScaleToZero(t *testing.T) {
	deployments := appsv1.SchemeGroupVersion.WithKind("Deployment")
	bound := bindingTo("m1", "m2")
	w, table := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bound), &interpreters.Table{}
	w.rules = table
	w.reconcile()
	before := w.workReplicas()
	table.Set(deployments, revising("replicas"))
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 5 })
	if _, writes := w.reconcile(); len(writes) > 0 || !cmp.Equal(before, w.workReplicas()) {
		t.Errorf("writes %v, replicas %v, want %v until the scheduler assigns replicas", writes, w.workReplicas(), before)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters[0].Replicas, b.Spec.Clusters[1].Replicas = 5, 0
	})
	w.reconcile()
	if diff := cmp.Diff(map[string]int64{"m1": 5, "m2": 0}, w.workReplicas()); diff != "" {
		t.Errorf("replicas of the Works (-want +got):\n%s", diff)
	}
}
