package work

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

func TestBindingTakeoverStaysInReach(t *testing.T) {
	const own = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: c}}`
	const moved = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: c}}`
	const annotated = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: c, annotations: {work.karmada.io/conflict-resolution: overwrite}}}`
	const namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`
	tests := map[string]struct {
		namespaced, cluster bool
		manifest, want      string
	}{
		"an object of its namespace":                         {true, false, own, "overwrite"},
		"an object of another namespace":                     {true, false, moved, "abort"},
		"an object of another namespace with the annotation": {true, false, annotated, "abort"},
		"a Namespace": {true, false, namespace, "abort"},
		"another namespace, for a cluster-scoped policy": {true, true, moved, "overwrite"},
		"a Namespace of a ClusterResourceBinding":        {false, true, namespace, "overwrite"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := binding.New(tc.namespaced)
			if tc.namespaced {
				bound.SetNamespace("shop")
			}
			bound.SetName("b")
			if tc.cluster {
				bound.SetLabels(map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id"})
			}
			bound.BindingSpec().ConflictResolution = policyv1alpha1.ConflictOverwrite
			if got := conflictResolution(parseObject(t, tc.manifest), bound); got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestWorkTakeoverStaysInReach checks Works whose manifests request to overwrite member objects.
func TestWorkTakeoverStaysInReach(t *testing.T) {
	coordinates := map[string]string{workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "b"}
	overridden := map[string]string{policyv1alpha1.AppliedClusterOverrides: "[]"}
	tests := map[string]struct {
		annotations map[string]string
		manifest    string
		want        bool
	}{
		"an object of its namespace":                     {coordinates, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: c}}`, true},
		"an object of another namespace":                 {coordinates, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: c}}`, false},
		"an object without a namespace":                  {coordinates, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`, false},
		"an object that a ClusterOverridePolicy moved":   {mergedMap(coordinates, overridden), `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: bank, name: c}}`, true},
		"an object of a Work that an administrator made": {nil, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			manifest := parseObject(t, tc.manifest)
			manifest.SetAnnotations(map[string]string{workv1alpha2.ResourceConflictResolutionAnnotation: workv1alpha2.ResourceConflictResolutionOverwrite})
			of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			if ok, _ := MayWrite(of, parseObject(t, tc.manifest), manifest); ok != tc.want {
				t.Errorf("may write: %v", ok)
			}
		})
	}
}
