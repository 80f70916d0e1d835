package memberhpa

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func newDeployment(desired, current int64) *unstructured.Unstructured {
	created := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"replicas": desired}, "status": map[string]any{"replicas": current},
	}}
	created.SetLabels(map[string]string{workv1alpha2.RetainReplicasLabel: "true"})
	return created
}

// newBinding returns a binding with a target for each status. An empty status is not reported.
func newBinding(replicas int32, statuses ...string) *workv1alpha2.ResourceBinding {
	created := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	created.Spec.Replicas, created.Status.SchedulerObservedGeneration = replicas, 3
	created.Spec.Placement = &policyv1alpha1.Placement{
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided},
	}
	for i, status := range statuses {
		name := fmt.Sprintf("m%d", i)
		created.Spec.Clusters = append(created.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
		if status != "" {
			created.Status.AggregatedStatus = append(created.Status.AggregatedStatus,
				workv1alpha2.AggregatedStatusItem{ClusterName: name, Status: &runtime.RawExtension{Raw: []byte(status)}})
		}
	}
	return created
}

func changed[T any](object T, change func(T)) T {
	change(object)
	return object
}

func TestDecideSync(t *testing.T) {
	two, three := `{"replicas":2}`, `{"replicas":3}`
	tests := map[string]struct {
		template     *unstructured.Unstructured
		bound        *workv1alpha2.ResourceBinding
		want         SyncAction
		wantReplicas int64
	}{
		"all clusters report the replicas of their autoscalers": {newDeployment(4, 5), newBinding(4, two, three), CopyReplicas, 5},
		"fewer replicas are copied too":                         {newDeployment(9, 5), newBinding(9, two, three), CopyReplicas, 5},
		"a template without the label": {
			changed(newDeployment(4, 5), func(d *unstructured.Unstructured) { d.SetLabels(nil) }), newBinding(4, two, three), NothingToSync, 0,
		},
		"a template without a binding": {newDeployment(4, 5), nil, NothingToSync, 0},
		"replicas that are not divided": {
			newDeployment(4, 5), changed(newBinding(4, two, three), func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ReplicaScheduling.ReplicaSchedulingType = policyv1alpha1.ReplicaSchedulingTypeDuplicated
			}), NothingToSync, 0,
		},
		"a binding without a placement": {
			newDeployment(4, 5), changed(newBinding(4, two, three), func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }), NothingToSync, 0,
		},
		"the template has the replicas of the members": {newDeployment(5, 5), newBinding(5, two, three), NothingToSync, 0},
		"a template without replicas": {
			changed(newDeployment(4, 5), func(d *unstructured.Unstructured) { delete(d.Object, "spec") }), newBinding(4, two, three), NothingToSync, 0,
		},
		"the binding has other replicas than the template": {newDeployment(4, 5), newBinding(3, two, three), WaitForStatus, 0},
		"the scheduler has not observed the binding": {
			newDeployment(4, 5), changed(newBinding(4, two, three), func(b *workv1alpha2.ResourceBinding) { b.Generation = 4 }), WaitForStatus, 0,
		},
		"a cluster has not reported":                    {newDeployment(4, 2), newBinding(4, two, ""), WaitForStatus, 0},
		"a cluster that is left still reports":          {newDeployment(4, 5), changed(newBinding(4, two, three), func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[:1] }), WaitForStatus, 0},
		"a cluster has no replicas":                     {newDeployment(4, 2), newBinding(4, two, `{"replicas":0}`), WaitForStatus, 0},
		"a cluster has reported no replicas":            {newDeployment(4, 2), newBinding(4, two, `{}`), WaitForStatus, 0},
		"a status that cannot be read":                  {newDeployment(4, 2), newBinding(4, two, `[`), WaitForStatus, 0},
		"the template's status is older than the items": {newDeployment(4, 3), newBinding(4, two, three), WaitForStatus, 0},
		"without clusters, nothing is known":            {newDeployment(4, 0), newBinding(4), WaitForStatus, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			action, replicas := DecideSync(test.template, test.bound)
			if action != test.want || replicas != test.wantReplicas {
				t.Errorf("decided %s %d, want %s %d", action, replicas, test.want, test.wantReplicas)
			}
		})
	}
}
