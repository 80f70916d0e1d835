package work

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// originAnnotations returns the annotations with which a manifest refers to its Work and its template.
func originAnnotations(template *unstructured.Unstructured, carrier *workv1alpha1.Work) map[string]string {
	annotations := map[string]string{
		workv1alpha1.WorkNamespaceAnnotation: carrier.Namespace,
		workv1alpha1.WorkNameAnnotation:      carrier.Name,
	}
	if uid := template.GetUID(); uid != "" {
		annotations[workv1alpha2.ResourceTemplateUIDAnnotation] = string(uid)
	}
	if generation := template.GetGeneration(); generation > 0 {
		annotations[workv1alpha2.ResourceTemplateGenerationAnnotation] = strconv.FormatInt(generation, 10)
	}
	return annotations
}

// setMetadata sets the manifest's labels and annotations, and two annotations that list the keys of
// both, including these two annotations. If a member object's list contains a key that its manifest no
// longer has, then the key was removed in the control plane and not in the member. setMetadata must
// be the last change to the manifest's metadata.
func setMetadata(manifest *unstructured.Unstructured, labels, annotations map[string]string) {
	// Both annotations must exist before the keys are listed, because the list includes them.
	annotations = mergedMap(annotations, map[string]string{
		workv1alpha2.ManagedAnnotations: "",
		workv1alpha2.ManagedLabels:      joinedKeys(labels),
	})
	annotations[workv1alpha2.ManagedAnnotations] = joinedKeys(annotations)
	manifest.SetLabels(labels)
	manifest.SetAnnotations(annotations)
}

// joinedKeys returns the map's keys, sorted and joined by commas.
func joinedKeys(of map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ",")
}

func addLabels(object metav1.Object, added map[string]string) {
	object.SetLabels(mergedMap(object.GetLabels(), added))
}

func addAnnotations(object metav1.Object, added map[string]string) {
	object.SetAnnotations(mergedMap(object.GetAnnotations(), added))
}

// mergedMap returns a new map with the entries of both maps. The entries of added take precedence.
// It returns nil if there are no entries.
func mergedMap(present, added map[string]string) map[string]string {
	if len(present)+len(added) == 0 {
		return nil
	}
	all := make(map[string]string, len(present)+len(added))
	maps.Copy(all, present)
	maps.Copy(all, added)
	return all
}
