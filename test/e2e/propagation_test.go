package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// awaitReadyReplicas waits until the control plane shows the sum of ready replicas.
func awaitReadyReplicas(t *testing.T, template *appsv1.Deployment, replicas int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s with %d ready replicas", template.Name, replicas), func(ctx context.Context) error {
		stored := &appsv1.Deployment{}
		if err := shared.karmada.Get(ctx, client.ObjectKeyFromObject(template), stored); err != nil {
			return err
		}
		if stored.Status.ReadyReplicas != replicas {
			return fmt.Errorf("%d replicas are ready", stored.Status.ReadyReplicas)
		}
		return nil
	})
}

func TestDeploymentIsPropagatedAndDeleted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	web := newDeployment(namespace, "web", 2)
	createObjects(t, shared, web, selectAll(deploymentSelector).propagationPolicy(namespace, member1, member2))
	awaitReadyReplicas(t, web, 4)
	if err := shared.karmada.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{member1, member2} {
		eventually(t, "no Deployment in "+name, func(ctx context.Context) error {
			return checkAbsent(ctx, shared.members[name], &appsv1.Deployment{ObjectMeta: objectMeta(namespace, "web")})
		})
	}
}

func TestPolicyWaitsForUnknownKind(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	widgets := policyv1alpha1.ResourceSelector{APIVersion: "e2e.example.io/v1", Kind: "Widget"}
	// The kind Widget does not exist yet. This must not delay the other kinds of the
	// policy.
	createObjects(t, shared, selectAll(widgets, configMapSelector).propagationPolicy(namespace, member1), newConfigMap(namespace, "plain", "1"))
	eventually(t, "the ConfigMap of the same policy", func(ctx context.Context) error {
		return shared.members[member1].Get(ctx, client.ObjectKey{Namespace: namespace, Name: "plain"}, &corev1.ConfigMap{})
	})

	definition := widgetDefinition()
	createObjects(t, shared, selectAll(policyv1alpha1.ResourceSelector{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: definition.GetName(),
	}).clusterPropagationPolicy("e2e-widgets", member1), definition)
	widget := newWidget(namespace)
	eventually(t, "creating a widget", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(shared.karmada.Create(ctx, widget))
	})
	eventually(t, "the widget in "+member1, func(ctx context.Context) error {
		return shared.members[member1].Get(ctx, client.ObjectKeyFromObject(widget), widget.DeepCopy())
	})
}

func newWidget(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "e2e.example.io/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": "gear"},
		"spec":     map[string]any{"teeth": int64(12)},
	}}
}

func widgetDefinition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.e2e.example.io"},
		"spec": map[string]any{
			"group": "e2e.example.io", "scope": "Namespaced",
			"names": map[string]any{"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

func TestOverrideErrorBlocksOneClusterOnly(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	web := newDeployment(namespace, "web", 1)
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: objectMeta(namespace, "mistaken"),
		Spec: policyv1alpha1.OverrideSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{deploymentSelector},
			OverrideRules: []policyv1alpha1.RuleWithCluster{{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member2}},
				Overriders:    policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/spec/absent/field", Operator: policyv1alpha1.OverriderOpRemove}}},
			}},
		},
	}
	createObjects(t, shared, override, web, selectAll(deploymentSelector).propagationPolicy(namespace, member1, member2))
	awaitWarningEvent(t, web, policyv1alpha1.EventReasonApplyOverridePolicyFailed,
		member2, `OverridePolicy "`+namespace+`/mistaken"`, "plaintext[0]", `"/spec/absent/field"`)
	awaitReadyReplicas(t, web, 1)
	if err := checkAbsent(t.Context(), shared.members[member2], &appsv1.Deployment{ObjectMeta: objectMeta(namespace, "web")}); err != nil {
		t.Errorf("a manifest without its override was delivered: %v", err)
	}

	updateObject(t, override, func(p *policyv1alpha1.OverridePolicy) {
		p.Spec.OverrideRules[0].Overriders.Plaintext[0].Path = "/spec/minReadySeconds"
		p.Spec.OverrideRules[0].Overriders.Plaintext[0].Operator = policyv1alpha1.OverriderOpAdd
		p.Spec.OverrideRules[0].Overriders.Plaintext[0].Value.Raw = []byte("1")
	})
	awaitReadyReplicas(t, web, 2)
}

func TestConflictResolutionOverwrite(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	memberObject := newConfigMap(namespace, "settings", "theirs")
	eventually(t, "creating an unmanaged object in "+member1, func(ctx context.Context) error {
		return shared.members[member1].Create(ctx, memberObject) // the namespace may not be propagated yet
	})
	karmadaObject := newConfigMap(namespace, "settings", "ours")
	createObjects(t, shared, karmadaObject, selectAll(configMapSelector).propagationPolicy(namespace, member1, member2))
	awaitValue := func(cluster, value string) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s in %s", value, cluster), func(ctx context.Context) error {
			found := &corev1.ConfigMap{}
			if err := shared.members[cluster].Get(ctx, client.ObjectKeyFromObject(karmadaObject), found); err != nil {
				return err
			}
			if found.Data["key"] != value {
				return fmt.Errorf("its value is %q", found.Data["key"])
			}
			return nil
		})
	}
	awaitWorkApplied(t, karmadaObject, member1, metav1.ConditionFalse, "ConfigMap", namespace+"/settings", member1,
		"delete it in the cluster", "work.karmada.io/conflict-resolution: overwrite")
	awaitValue(member1, "theirs")
	awaitValue(member2, "ours")

	updateObject(t, karmadaObject, func(template *corev1.ConfigMap) {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, "work.karmada.io/conflict-resolution", "overwrite")
	})
	awaitWorkApplied(t, karmadaObject, member1, metav1.ConditionTrue)
	awaitValue(member1, "ours")
}
