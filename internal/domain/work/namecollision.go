package work

import (
	"fmt"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// NameCollision reports whether the stored Work belongs to a different object than the desired Work,
// although both Works have the same name. This is possible because Work names contain only a short
// hash. The desired Work must then not replace the stored Work. The Works collide if the stored Work
// contains none of the desired Work's objects. object is the stored Work's first object. An object's
// API version is ignored. A Work without manifests never collides.
func NameCollision(stored, desired *workv1alpha1.Work) (object string, another bool) {
	if len(desired.Spec.Workload.Manifests) == 0 {
		return "", false
	}
	wanted, err := decodeIdentifier(desired.Spec.Workload.Manifests[0])
	if err != nil {
		return "", false
	}
	for i, manifest := range stored.Spec.Workload.Manifests {
		identifier, err := decodeIdentifier(manifest)
		description := "an object that cannot be read"
		if err == nil {
			description = describeIdentifier(identifier)
		}
		identifier.Version = wanted.Version
		if err == nil && identifier == wanted {
			return "", false
		}
		if i == 0 {
			object = description
		}
	}
	return object, object != ""
}

func describeIdentifier(of workv1alpha1.ResourceIdentifier) string {
	kind := of.Kind
	if of.Group != "" {
		kind += "." + of.Group
	}
	if of.Namespace == "" {
		return fmt.Sprintf("%s %s", kind, of.Name)
	}
	return fmt.Sprintf("%s %s/%s", kind, of.Namespace, of.Name)
}
