package standalone

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/apis/core"
)

func TestUntrackedFieldsRemovesManagedFieldsOfControllers(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation}
	}
	created := entry("kube-controller-manager", metav1.ManagedFieldsOperationUpdate)
	applied := entry("kubectl", metav1.ManagedFieldsOperationApply)
	tests := map[string]struct {
		object runtime.Object
		want   int
	}{
		"a Pod created by a controller":  {object: ownedByReplicaSet(podWithManagedFields(created)), want: 0},
		"a Pod created by a user":        {object: podWithManagedFields(created), want: 1},
		"an applied Pod of a controller": {object: ownedByReplicaSet(podWithManagedFields(applied)), want: 1},
		"a Pod with two field managers":  {object: ownedByReplicaSet(podWithManagedFields(created, applied)), want: 2},
		"an object without metadata":     {object: &metav1.Status{}, want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			attributes := admission.NewAttributesRecord(test.object, nil, core.Kind("Pod").WithVersion("v1"), "default", "web",
				core.Resource("pods").WithVersion("v1"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
			if err := (untrackedFields{admission.NewHandler(admission.Create)}).Admit(t.Context(), attributes, nil); err != nil {
				t.Fatal(err)
			}
			got := 0
			if pod, ok := test.object.(*core.Pod); ok {
				got = len(pod.ManagedFields)
			}
			if got != test.want {
				t.Errorf("%d managed field entries are stored, want %d", got, test.want)
			}
		})
	}
}

func ownedByReplicaSet(pod *core.Pod) *core.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "1", Controller: new(true)}}
	return pod
}

func podWithManagedFields(owners ...metav1.ManagedFieldsEntry) *core.Pod {
	return &core.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: owners}}
}
