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

// markOrigin writes on the manifest where it comes from: the Work that carries it
// and the template it was made of.
func markOrigin(manifest, template *unstructured.Unstructured, carrier metav1.Object) {
	addLabels(manifest, map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
	marks := map[string]string{
		workv1alpha1.WorkNamespaceAnnotation: carrier.GetNamespace(),
		workv1alpha1.WorkNameAnnotation:      carrier.GetName(),
	}
	if uid := template.GetUID(); uid != "" {
		marks[workv1alpha2.ResourceTemplateUIDAnnotation] = string(uid)
	}
	if generation := template.GetGeneration(); generation > 0 {
		marks[workv1alpha2.ResourceTemplateGenerationAnnotation] = strconv.FormatInt(generation, 10)
	}
	addAnnotations(manifest, marks)
}

// markManaged writes on the manifest which labels and annotations it has, itself
// included. A member object that lists a key which its manifest no longer has
// lost the key here, and not because something in the member took it away. It
// must be the last change to the manifest's metadata.
func markManaged(manifest *unstructured.Unstructured) {
	// Both keys must exist before the annotations are listed.
	addAnnotations(manifest, map[string]string{
		workv1alpha2.ManagedAnnotations: "",
		workv1alpha2.ManagedLabels:      keys(manifest.GetLabels()),
	})
	addAnnotations(manifest, map[string]string{
		workv1alpha2.ManagedAnnotations: keys(manifest.GetAnnotations()),
	})
}

// keys lists the keys of a map, sorted and joined by commas.
func keys(of map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), ",")
}

func addLabels(object metav1.Object, added map[string]string) {
	object.SetLabels(merged(object.GetLabels(), added))
}

func addAnnotations(object metav1.Object, added map[string]string) {
	object.SetAnnotations(merged(object.GetAnnotations(), added))
}

// merged is a new map with the entries of both; those of added win. It is nil
// when there are none.
func merged(present, added map[string]string) map[string]string {
	if len(present)+len(added) == 0 {
		return nil
	}
	all := make(map[string]string, len(present)+len(added))
	maps.Copy(all, present)
	maps.Copy(all, added)
	return all
}
