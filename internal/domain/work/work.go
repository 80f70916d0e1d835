// Package work renders the Work that a cluster gets for a template, merges manifests with member
// objects, and aggregates the members' statuses.
//
// To deliver a template, Render returns the Work for one of a binding's targets, and Merge updates a
// stored Work to that state. In the member, DesiredObject merges a manifest with the member object,
// IsInSync reports whether a write would change anything, and MayWrite and MayDelete report whether
// Karmada may change or delete the object. To collect the status, MergeManifestStatus and Aggregate
// combine the statuses that members report.
//
// Invariants: a function changes its inputs only if its comment says so. Every function is idempotent:
// applied to its own result it returns the same result, and a difference in order or layout causes no
// write. A member object is taken over or deleted only on proof that it was created for the same Work.
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
	utiljson "k8s.io/apimachinery/pkg/util/json"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// ExecutionNamespace returns the control plane's namespace that contains the given cluster's Works.
func ExecutionNamespace(cluster string) string {
	return clusterv1alpha1.ExecutionNamespacePrefix + cluster
}

// ClusterOf returns the cluster whose Works the namespace contains. ok is false if the namespace is not
// an execution namespace.
func ClusterOf(namespace string) (cluster string, ok bool) {
	cluster, ok = strings.CutPrefix(namespace, clusterv1alpha1.ExecutionNamespacePrefix)
	return cluster, ok && cluster != ""
}

// DecodeManifest parses a manifest.
func DecodeManifest(manifest workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest.Raw); err != nil {
		return nil, fmt.Errorf("decoding the manifest: %w", err)
	}
	return object, nil
}

// DecodeManifestMetadata parses the kind and the metadata of a manifest, which takes a fraction of the
// memory. The returned object has no other fields.
func DecodeManifestMetadata(manifest workv1alpha1.Manifest) (*unstructured.Unstructured, error) {
	var head struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
	}
	if err := utiljson.Unmarshal(manifest.Raw, &head); err != nil {
		return nil, fmt.Errorf("decoding the manifest: %w", err)
	}
	if head.Kind == "" {
		return nil, errNoKind
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": head.APIVersion, "kind": head.Kind, "metadata": head.Metadata}}, nil
}

// HasManifestOfKind reports whether the Work has a manifest of the given kind.
func HasManifestOfKind(work *workv1alpha1.Work, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(work.Spec.Workload.Manifests, func(manifest workv1alpha1.Manifest) bool {
		var head metav1.TypeMeta
		return json.Unmarshal(manifest.Raw, &head) == nil && head.GroupVersionKind() == kind
	})
}

// EncodeManifest serializes the object to JSON. Equal objects give equal bytes.
func EncodeManifest(object *unstructured.Unstructured) (workv1alpha1.Manifest, error) {
	raw, err := jsonedit.Marshal(object.Object)
	if err != nil {
		return workv1alpha1.Manifest{}, fmt.Errorf("encoding the manifest of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}, nil
}

// PreservesObjects reports whether the Work's objects are kept in the member when the Work is deleted.
func PreservesObjects(work *workv1alpha1.Work) bool {
	return work.Spec.PreserveResourcesOnDeletion != nil && *work.Spec.PreserveResourcesOnDeletion
}
