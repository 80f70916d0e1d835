package v1alpha1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

var (
	bindingMeta = metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Labels: map[string]string{"a": "b"}}
	requests    = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	conditions  = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue}}
	status      = runtime.RawExtension{Raw: []byte(`{"readyReplicas":2}`)}
)

func newV1alpha1Binding() *ResourceBinding {
	return &ResourceBinding{
		TypeMeta:   typeMeta("work.karmada.io/v1alpha1", "ResourceBinding"),
		ObjectMeta: bindingMeta,
		Spec: ResourceBindingSpec{
			Resource: ObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "812",
				ReplicaResourceRequirements: requests, Replicas: 3,
			},
			Clusters: []TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}},
		},
		Status: ResourceBindingStatus{
			Conditions: conditions,
			AggregatedStatus: []AggregatedStatusItem{
				{ClusterName: "m1", Status: &status, Applied: true},
				{ClusterName: "m2", AppliedMessage: "no such namespace"},
			},
		},
	}
}

func newV1alpha2Binding() *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		TypeMeta:   typeMeta("work.karmada.io/v1alpha2", "ResourceBinding"),
		ObjectMeta: bindingMeta,
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{
				APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", ResourceVersion: "812",
			},
			Replicas:            3,
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: requests},
			Clusters:            []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 1}},
		},
		Status: workv1alpha2.ResourceBindingStatus{
			Conditions: conditions,
			AggregatedStatus: []workv1alpha2.AggregatedStatusItem{
				{ClusterName: "m1", Status: &status, Applied: true},
				{ClusterName: "m2", AppliedMessage: "no such namespace"},
			},
		},
	}
}

func TestConvertBinding(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(newV1alpha2Binding(), newV1alpha1Binding().ToV1alpha2()); diff != "" {
		t.Errorf("v1alpha2 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(newV1alpha1Binding(), ResourceBindingFromV1alpha2(newV1alpha2Binding())); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
}

func TestConversionDropsNewFields(t *testing.T) {
	t.Parallel()
	stored := newV1alpha2Binding()
	stored.Spec.Placement = &policyv1alpha1.Placement{}
	stored.Spec.Resource.UID = "0001"
	stored.Spec.ReplicaRequirements.PriorityClassName = "high"
	stored.Status.AggregatedStatus[0].Health = workv1alpha2.ResourceHealthy
	stored.Status.SchedulerObservedGeneration = 4
	if diff := cmp.Diff(newV1alpha1Binding(), ResourceBindingFromV1alpha2(stored)); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
}

func TestConversionRoundTrip(t *testing.T) {
	t.Parallel()
	fill := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 3).Funcs(
		func(e *runtime.RawExtension, c randfill.Continue) { e.Raw = []byte(c.String(8)) },
	)
	for range 200 {
		want := &ResourceBinding{}
		fill.Fill(want)
		want.TypeMeta = typeMeta("work.karmada.io/v1alpha1", "ResourceBinding")
		if diff := cmp.Diff(want, ResourceBindingFromV1alpha2(want.ToV1alpha2())); diff != "" {
			t.Fatalf("ResourceBinding (-before +after):\n%s", diff)
		}

		wantCluster := &ClusterResourceBinding{ObjectMeta: want.ObjectMeta, Spec: want.Spec, Status: want.Status}
		wantCluster.TypeMeta = typeMeta("work.karmada.io/v1alpha1", "ClusterResourceBinding")
		if diff := cmp.Diff(wantCluster, ClusterResourceBindingFromV1alpha2(wantCluster.ToV1alpha2())); diff != "" {
			t.Fatalf("ClusterResourceBinding (-before +after):\n%s", diff)
		}
	}
}

func TestConvertedBindingsShareNoMemory(t *testing.T) {
	t.Parallel()
	input := newV1alpha1Binding().DeepCopy()
	before := input.DeepCopy()
	converted := input.ToV1alpha2()
	converted.Labels["a"] = "changed"
	converted.Status.Conditions[0].Type = "changed"
	converted.Spec.ReplicaRequirements.ResourceRequest[corev1.ResourceCPU] = resource.MustParse("9")
	converted.Status.AggregatedStatus[0].Status.Raw[0] = '['
	if diff := cmp.Diff(before, input); diff != "" {
		t.Errorf("input changed with the output (-before +after):\n%s", diff)
	}
}
