// Package work answers: what does a cluster get of a template, how is it put
// into the member, and what comes back?
//
// On the way out, Render makes the Work of one target of a binding and Merge
// brings a stored Work to that state. In the member, Desired merges a manifest
// with the object that is there, Same tells whether that changes anything, and
// MayWrite and MayDelete whether the object is ours to touch. On the way back,
// MergeManifestStatus and Gather bring together what members report.
//
// Invariants: inputs are never changed unless a function says so; every function
// is idempotent, so that running it on its own result changes nothing, and no
// write follows from a difference in order or layout; an object is only ever
// taken over or deleted on proof that it was created for the same Work.
package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// ExecutionNamespace is where the Works of a cluster live.
func ExecutionNamespace(cluster string) string {
	return clusterv1alpha1.ExecutionSpacePrefix + cluster
}

// ClusterOf is the cluster whose Works live in the namespace; ok is false for a
// namespace that holds no Works.
func ClusterOf(namespace string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(namespace, clusterv1alpha1.ExecutionSpacePrefix)
	return cluster, ok && cluster != ""
}

// Decode reads a manifest.
func Decode(manifest workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest.Raw); err != nil {
		return nil, fmt.Errorf("decoding the manifest: %w", err)
	}
	return object, nil
}

// Carries reports whether a Work has a manifest of a kind.
func Carries(of *workv1alpha1.Work, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(of.Spec.Workload.Manifests, func(manifest workv1alpha1.Manifest) bool {
		var head metav1.TypeMeta
		return json.Unmarshal(manifest.Raw, &head) == nil && head.GroupVersionKind() == kind
	})
}

// Encode writes a manifest. Equal objects give equal bytes.
func Encode(object *unstructured.Unstructured) (workv1alpha1.Manifest, error) {
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return workv1alpha1.Manifest{}, fmt.Errorf("encoding the manifest of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}, nil
}
