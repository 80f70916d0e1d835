package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/diagnose"
)

func TestStatesInTree(t *testing.T) {
	suspended := true
	tests := map[string]struct {
		edit func(*workv1alpha2.ResourceBinding, *workv1alpha1.Work)
		want []string
	}{
		"a delivered Work": {func(*workv1alpha2.ResourceBinding, *workv1alpha1.Work) {}, []string{"NotFound", "Scheduled", "Applied", "healthy: 2/2 ready"}},
		"a suspended Work": {
			func(_ *workv1alpha2.ResourceBinding, of *workv1alpha1.Work) { of.Spec.SuspendDispatching = &suspended },
			[]string{"NotFound", "Scheduled", "DispatchingSuspended", "healthy: 2/2 ready"},
		},
		"a suspended binding": {
			func(bound *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
				bound.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &suspended}}
			},
			[]string{"NotFound", "Scheduled", "DispatchingSuspended", "healthy: 2/2 ready"},
		},
		"the scheduling is suspended": {
			func(bound *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
				bound.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: &suspended}
			},
			[]string{"NotFound", "SchedulingSuspended", "Applied", "healthy: 2/2 ready"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			facts := treeFacts()
			test.edit(facts.Binding.Value.(*workv1alpha2.ResourceBinding), facts.Works.Value[0])
			var got []string
			for nodes := []*treeNode{newTemplateNode(&facts)}; len(nodes) > 0; nodes = nodes[0].Children {
				got = append(got, nodes[0].State)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		})
	}
}

// treeFacts returns the facts of a deleted Deployment whose binding has one applied Work.
func treeFacts() diagnose.Facts {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", UID: "uid", Generation: 1,
		Labels:      map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
		Annotations: map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop", policyv1alpha1.PropagationPolicyNameAnnotation: "web", workv1alpha2.RenderedGenerationAnnotation: "uid/1"},
	}}
	bound.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, Replicas: 2,
		Placement: &policyv1alpha1.Placement{}, Clusters: []workv1alpha2.TargetCluster{{Name: "east", Replicas: 2}},
	}
	bound.Status.SchedulerObservedGeneration = 1
	bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	delivered := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "web", Annotations: map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment",
	}}}
	delivered.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web"}}`)}}}
	delivered.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	delivered.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"},
		Health:     workv1alpha1.ResourceHealthy, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":2,"readyReplicas":2}`)},
	}}
	east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
	east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	facts := diagnose.Facts{
		Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Key:  types.NamespacedName{Namespace: "shop", Name: "web"}, Now: time.Unix(0, 0),
	}
	facts.Binding.Value, facts.Works.Value, facts.Clusters.Value = bound, []*workv1alpha1.Work{delivered}, []*clusterv1alpha1.Cluster{east}
	return facts
}
