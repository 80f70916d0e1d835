package diagnose

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	past = metav1.NewTime(noon.Add(-12 * time.Minute))
)

// healthyFacts returns the facts of Deployment shop/web with 6 replicas, which runs in the clusters
// east and west. Cluster north is not selected.
func healthyFacts() Facts {
	template := newDeployment()
	chosen := newPolicy("web")
	policy.ClaimOf(chosen).Apply(template)
	f := Facts{
		Kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Key:  types.NamespacedName{Namespace: "shop", Name: "web"}, Now: noon,
		Template: Fact[*unstructured.Unstructured]{Value: template},
		Policies: Fact[[]policy.Object]{Value: []policy.Object{chosen}},
		Members:  map[string]MemberFacts{},
	}
	for _, name := range []string{"east", "north", "west"} {
		f.Clusters.Value = append(f.Clusters.Value, newCluster(name))
	}
	bound := newBinding(chosen)
	f.Binding.Value = bound
	f.Works.Value = []*workv1alpha1.Work{newWork("east", 4), newWork("west", 2)}
	return f
}

func newDeployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "uid-web", "labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"replicas": int64(6)},
	}}
}

func newPolicy(name string) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{}
	p.Namespace, p.Name = "shop", name
	p.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	p.Spec.Placement = policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east", "west"}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
		},
	}
	return p
}

func newCluster(name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Deployment"}}}}
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10"), corev1.ResourcePods: resource.MustParse("100"),
	}}
	return cluster
}

func newBinding(chosen *policyv1alpha1.PropagationPolicy) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{}
	bound.Namespace, bound.Name, bound.UID, bound.Generation = "shop", "web-deployment", "uid-binding", 1
	isController := true
	bound.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "uid-web", Controller: &isController}}
	policy.ClaimOf(chosen).Apply(bound)
	bound.Annotations[workv1alpha2.RenderedGenerationAnnotation] = "uid-binding/1"
	bound.Spec = workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web"},
		Replicas: 6, ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
		Placement: chosen.Spec.Placement.DeepCopy(),
		Clusters:  []workv1alpha2.TargetCluster{{Name: "east", Replicas: 4}, {Name: "west", Replicas: 2}},
	}
	bound.Status.SchedulerObservedGeneration = 1
	setScheduled(bound, metav1.ConditionTrue, workv1alpha2.BindingReasonSuccess, "Binding has been scheduled successfully.")
	return bound
}

func setScheduled(bound *workv1alpha2.ResourceBinding, status metav1.ConditionStatus, reason, message string) {
	bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: status, Reason: reason, Message: message, ObservedGeneration: bound.Generation}}
}

func newWork(cluster string, replicas int) *workv1alpha1.Work {
	manifest := newDeployment()
	manifest.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: "true", workv1alpha1.WorkPermanentIDLabel: "id-" + cluster})
	raw, _ := json.Marshal(manifest.Object)
	w := &workv1alpha1.Work{}
	w.Namespace, w.Name, w.Generation = "karmada-es-"+cluster, "web-6f9", 1
	w.Annotations = map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment"}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	setCondition(w, workv1alpha1.WorkApplied, metav1.ConditionTrue, workv1alpha1.WorkAppliedSuccessfulReason, "")
	setHealth(w, workv1alpha1.ResourceHealthy, fmt.Sprintf(`{"replicas": %d, "readyReplicas": %d}`, replicas, replicas))
	return w
}

func setCondition(w *workv1alpha1.Work, kind string, status metav1.ConditionStatus, reason, message string) {
	w.Status.Conditions = []metav1.Condition{{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1}}
}

func setHealth(w *workv1alpha1.Work, health workv1alpha1.ResourceHealth, status string) {
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{
		Identifier: workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop", Name: "web"},
		Status:     &runtime.RawExtension{Raw: []byte(status)}, Health: health,
	}}
}

// reject makes the member west reject the Work with a message.
func (f *Facts) reject(message string) {
	setCondition(f.Works.Value[1], workv1alpha1.WorkApplied, metav1.ConditionFalse, workv1alpha1.WorkAppliedFailedReason, "Failed to apply all manifests (0/1): "+message)
	f.Works.Value[1].Status.ManifestStatuses = nil
}

func (f *Facts) binding() *workv1alpha2.ResourceBinding {
	return f.Binding.Value.(*workv1alpha2.ResourceBinding)
}

func (f *Facts) policy() *policyv1alpha1.PropagationPolicy {
	return f.Policies.Value[0].(*policyv1alpha1.PropagationPolicy)
}

// unclaim removes the claim from the template, and the binding with everything behind it.
func (f *Facts) unclaim() {
	policy.ClaimOf(f.policy()).Remove(f.Template.Value)
	f.Binding.Value, f.Works.Value = nil, nil
}
