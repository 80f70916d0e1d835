package integration

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// hasClusters checks the names of the clusters to which a binding is scheduled.
func hasClusters(want ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []string
		for _, target := range b.Spec.Clusters {
			got = append(got, target.Name)
		}
		return checkEqual("clusters", want, got)
	}
}

func TestReplicasAreDuplicatedOrDividedByWeight(t *testing.T) {
	env := shared(t)
	for name, c := range map[string]struct {
		placement policyv1alpha1.Placement
		replicas  int32
		want      map[string]int32
	}{
		"duplicated by default": {placementOn(member1, member2), 3, map[string]int32{member1: 3, member2: 3}},
		"divided by weight":     {dividedPlacement(map[string]int64{member1: 2, member2: 1}), 6, map[string]int32{member1: 4, member2: 2}},
		"divided between three": {dividedPlacement(map[string]int64{member1: 1, member2: 1, member3: 2}), 8, map[string]int32{member1: 2, member2: 2, member3: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := deployment(env.Namespace(t), "web", c.replicas)
			env.Create(t, policyFor(t, c.placement, template), template)
			for cluster, want := range c.want {
				awaitInMember(t, env, cluster, template, hasReplicas(want))
			}
			await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
				got := map[string]int32{}
				for _, target := range b.Spec.Clusters {
					got[target.Name] = target.Replicas
				}
				return checkEqual("replicas", c.want, got)
			})
		})
	}
}

func TestClusterAffinitySelectsByNameLabelsAndExclusion(t *testing.T) {
	env := shared(t)
	for name, c := range map[string]struct {
		affinity *policyv1alpha1.ClusterAffinity
		want     []string
	}{
		"no affinity":       {nil, []string{member1, member2, member3}},
		"an empty affinity": {&policyv1alpha1.ClusterAffinity{}, []string{member1, member2, member3}},
		"cluster names":     {&policyv1alpha1.ClusterAffinity{ClusterNames: []string{member3, member1}}, []string{member1, member3}},
		"excluded clusters": {&policyv1alpha1.ClusterAffinity{ExcludeClusters: []string{member1}}, []string{member2, member3}},
		"a label selector":  {&policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"member": member2}}}, []string{member2}},
		"names and excluded clusters": {
			&policyv1alpha1.ClusterAffinity{ClusterNames: []string{member1, member2}, ExcludeClusters: []string{member2}},
			[]string{member1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := configMap(env.Namespace(t), "placed")
			env.Create(t, policyFor(t, policyv1alpha1.Placement{ClusterAffinity: c.affinity}, template), template)
			await(t, env.Karmada, bindingOf(t, template), hasClusters(c.want...))
		})
	}
}

func TestNoClusterFitReportsTheReasonOfEachCluster(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "homeless")
	policy := policyFor(t, placementOn("nowhere"), template)
	env.Create(t, policy, template)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(hasClusters()(b), checkCondition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit",
			"0/3 clusters are available: no cluster matches the cluster affinity (clusterNames nowhere)."))
	})
	awaitEvent(t, env, template, corev1.EventTypeWarning, "ScheduleBindingFailed")

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn(member1) })
	awaitInMember(t, env, member1, template, exists)
}

// newWidgetCRD returns a CRD that tests create in some clusters only.
func newWidgetCRD() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

func newWidget(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": "wheel"},
		"spec":     map[string]any{"size": int64(3)},
	}}
}

// createCRD creates the CRD as an unstructured object, because the scheme of the clients lacks
// the type.
func createCRD(t testing.TB, clusterClient client.Client, definition *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion("apiextensions.k8s.io/v1")
	object.SetKind("CustomResourceDefinition")
	if err := clusterClient.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestObjectIsScheduledOnlyToClustersThatServeItsKind(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	definition := createCRD(t, env.Karmada, newWidgetCRD())
	cleanUp(t, env, definition)
	template := newWidget(namespace)
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "widgets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.com/v1", Kind: "Widget"}},
			Placement:         placementOn(member1, member2),
		},
	}
	env.Create(t, policy)
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
	rb := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wheel-widget"}}
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return checkCondition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit",
			"0/3 clusters are available: clusters member1, member2: do not serve example.com/v1 Widget.")
	})

	// The CRD is propagated like any other object.
	propagated := &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{
				APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: definition.GetName(),
			}},
			Placement: placementOn(member2),
		},
	}
	cleanUp(t, env, propagated)
	env.Create(t, propagated)
	await(t, env.Karmada, rb, hasClusters(member2))
	awaitInMember(t, env, member2, template, func(w *unstructured.Unstructured) error {
		size, _, err := unstructured.NestedInt64(w.Object, "spec", "size")
		return errors.Join(err, checkEqual("size", int64(3), size))
	})
}

// A CRD and a workload of its kind are applied together, and member2 serves the kind later than
// member1. The scheduler restarts in between.
func TestWeightedWorkloadTakesClusterThatServesItsKindLater(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	crd := newWidgetCRD()
	crd.Name, crd.Spec.Group = "clonesets.apps.kruise.io", "apps.kruise.io"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "clonesets", Singular: "cloneset", Kind: "CloneSet", ListKind: "CloneSetList"}
	crd.Spec.Versions[0].Name = "v1alpha1"
	definition := createCRD(t, env.Karmada, crd)
	cleanUp(t, env, definition)
	propagated := &policyv1alpha1.ClusterPropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "clonesets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{
				APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: definition.GetName(),
			}},
			Placement: placementOn(member1),
		},
	}
	cleanUp(t, env, propagated)
	env.Create(t, propagated)
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet",
		"metadata": map[string]any{"namespace": namespace, "name": "web"},
		"spec":     map[string]any{"replicas": int64(4), "template": map[string]any{"spec": map[string]any{}}},
	}}
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps.kruise.io/v1alpha1", Kind: "CloneSet"}},
			Placement:         dividedPlacement(map[string]int64{member1: 3, member2: 1}),
		},
	})
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
	rb := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-cloneset"}}
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("targets", []workv1alpha2.TargetCluster{{Name: member1, Replicas: 4}}, b.Spec.Clusters)
	})

	restartComponents(t, env)
	testenv.Update(t, env.Karmada, propagated, func(p *policyv1alpha1.ClusterPropagationPolicy) { p.Spec.Placement = placementOn(member1, member2) })
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("targets", []workv1alpha2.TargetCluster{{Name: member1, Replicas: 3}, {Name: member2, Replicas: 1}}, b.Spec.Clusters)
	})
	awaitInMember(t, env, member2, template, func(w *unstructured.Unstructured) error {
		replicas, _, err := unstructured.NestedInt64(w.Object, "spec", "replicas")
		return errors.Join(err, checkEqual("replicas", int64(1), replicas))
	})
}

func TestNoScheduleTaintAffectsOnlyNewObjects(t *testing.T) {
	env := alone(t)
	taint := corev1.Taint{Key: "maintenance", Value: "soon", Effect: corev1.TaintEffectNoSchedule}
	namespace := env.Namespace(t)
	early, late, tolerant := configMap(namespace, "early"), configMap(namespace, "late"), configMap(namespace, "tolerant")
	env.Create(t, policyFor(t, placementOn(member2, member3), early), early)
	awaitInMember(t, env, member3, early, exists)

	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: member3}}
	testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = append(c.Spec.Taints, taint) })
	t.Cleanup(func() {
		testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	})
	policy := policyFor(t, placementOn(member2, member3), tolerant)
	policy.Spec.Placement.ClusterTolerations = []corev1.Toleration{{Key: "maintenance", Operator: corev1.TolerationOpExists}}
	env.Create(t, policyFor(t, placementOn(member2, member3), late), late, policy, tolerant)
	awaitInMember(t, env, member3, tolerant, exists)
	await(t, env.Karmada, bindingOf(t, late), hasClusters(member2))
	awaitInMember(t, env, member3, early, exists)

	testenv.Update(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil })
	awaitInMember(t, env, member3, late, exists)
}

// NoSchedule taints affect only new placements. When every cluster is tainted, scheduled
// workloads keep their clusters, and changes of their replicas are still scheduled.
func TestScheduledReplicasStayWhenEveryClusterIsTainted(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	placed, late := deployment(namespace, "placed", 4), configMap(namespace, "late")
	env.Create(t, policyFor(t, dividedPlacement(map[string]int64{member1: 1, member2: 1}), placed), placed)
	awaitInMember(t, env, member1, placed, hasReplicas(2))
	awaitInMember(t, env, member2, placed, hasReplicas(2))

	members := []string{member1, member2, member3}
	taint := func(taints ...corev1.Taint) {
		for _, name := range members {
			testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = taints })
		}
	}
	t.Cleanup(func() { taint() })
	taint(corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
	env.Create(t, policyFor(t, placementOn(members...), late), late)
	await(t, env.Karmada, bindingOf(t, late), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(hasClusters()(b), checkCondition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit",
			"0/3 clusters are available: clusters member1, member2, member3: untolerated taint {maintenance=:NoSchedule}."))
	})

	testenv.Update(t, env.Karmada, placed, func(d *appsv1.Deployment) { *d.Spec.Replicas = 6 })
	awaitInMember(t, env, member1, placed, hasReplicas(3))
	awaitInMember(t, env, member2, placed, hasReplicas(3))
	rb := bindingOf(t, placed)
	triggeredAt := metav1.Now()
	testenv.Update(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = &triggeredAt })
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		if b.Status.LastScheduledTime == nil || b.Status.LastScheduledTime.Before(b.Spec.RescheduleTriggeredAt) {
			return errors.New("the binding is not rescheduled yet")
		}
		return hasClusters(member1, member2)(b)
	})

	taint()
	for _, name := range members {
		awaitInMember(t, env, name, late, exists)
	}
}

func TestSchedulerFollowsChangesOfReplicasAndWeights(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 4)
	policy := policyFor(t, dividedPlacement(map[string]int64{member1: 1, member2: 3}), template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, hasReplicas(1))
	awaitInMember(t, env, member2, template, hasReplicas(3))
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement = dividedPlacement(map[string]int64{member1: 3, member2: 1})
	})
	awaitInMember(t, env, member1, template, hasReplicas(3))
	awaitInMember(t, env, member2, template, hasReplicas(1))
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { *d.Spec.Replicas = 0 })
	awaitInMember(t, env, member1, template, hasReplicas(0))
}
