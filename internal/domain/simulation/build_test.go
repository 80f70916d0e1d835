package simulation

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/policy"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// member returns a cluster that serves ConfigMaps and Deployments, with room for pods Pods.
func member(name string, pods int64, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
	}}
	for _, apply := range change {
		apply(cluster)
	}
	return cluster
}

// template returns a Deployment with these replicas, or a ConfigMap if replicas is negative.
func template(name string, replicas int64) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	if replicas >= 0 {
		object.Object = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": replicas}}
	}
	object.SetNamespace("shop")
	object.SetName(name)
	return object
}

// stored returns the template as it is stored, with the claim of a policy, which may be nil.
func stored(object *unstructured.Unstructured, claimant policy.Object) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetUID(types.UID("uid-" + object.GetName()))
	object.SetResourceVersion("7")
	if claimant != nil {
		policy.ClaimOf(claimant).Apply(object)
	}
	return object
}

// policyFor returns a stored policy for the kinds and names "Deployment/web".
func policyFor(t testing.TB, name, placementYAML string, selected ...string) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if err := yaml.UnmarshalStrict([]byte(placementYAML), &p.Spec.Placement); err != nil {
		t.Fatal(err)
	}
	for _, each := range selected {
		kind, object, _ := strings.Cut(each, "/")
		apiVersion := "v1"
		if kind == "Deployment" {
			apiVersion = "apps/v1"
		}
		p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: apiVersion, Kind: kind, Name: object})
	}
	prepared, err := PreparePolicy(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	prepared.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-" + name})
	return prepared.(*policyv1alpha1.PropagationPolicy)
}

func rules() interpreter.Source {
	return interpreter.New(builtin.New(builtin.Options{Now: func() time.Time { return noon }}))
}

// world is a control plane whose bindings are scheduled.
type world struct{ Input }

// newWorld returns a control plane with the objects, in which all templates are placed.
func newWorld(t testing.TB, clusters []*clusterv1alpha1.Cluster, policies []policy.Object, templates ...*unstructured.Unstructured) *world {
	t.Helper()
	w := &world{Input{
		Clusters: clusters, Policies: policies, Rules: rules(), Now: noon,
		Settings: Settings{SchedulerName: policyv1alpha1.DefaultSchedulerName},
	}}
	first := w.Input
	first.GivenTemplates = templates
	for _, each := range templates {
		first.Templates = append(first.Templates, stored(each, nil))
	}
	r := newSimulator(first)
	for _, each := range r.candidates() {
		r.bindTemplate(t.Context(), each)
		chosen, _ := r.choosePolicy(each.template)
		w.Templates = append(w.Templates, stored(each.template, chosen))
	}
	r.sortSubjects()
	r.scheduleAll()
	for _, each := range r.sorted {
		if each.bound != nil {
			w.Bindings = append(w.Bindings, finished(t, each.bound))
		}
	}
	return w
}

// finished returns the binding in the state in which the scheduler leaves it.
func finished(t testing.TB, bound binding.Object) binding.Object {
	t.Helper()
	applied, err := placement.AppliedPlacement(bound.BindingSpec().Placement)
	if err != nil {
		t.Fatal(err)
	}
	annotations := bound.GetAnnotations()
	annotations[policyv1alpha1.AppliedPlacementAnnotation] = applied
	bound.SetAnnotations(annotations)
	bound.SetGeneration(2)
	status := bound.BindingStatus()
	status.SchedulerObservedGeneration, status.LastScheduledTime = 2, &metav1.Time{Time: noon}
	return bound
}

// binding returns the stored binding of that name.
func (w *world) binding(t testing.TB, name string) *workv1alpha2.ResourceBinding {
	t.Helper()
	for _, each := range w.Bindings {
		if each.GetName() == name {
			return each.(*workv1alpha2.ResourceBinding)
		}
	}
	t.Fatalf("no binding %s", name)
	return nil
}
