package work

import (
	"fmt"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// CarriesAnother returns the first object of a stored Work if none of its objects is the
// one that the desired Work carries. Names of Works are short: two objects can have
// the same one, and then the Work must not be taken from the first. The version of
// an object makes no difference. A Work without manifests carries nothing.
func CarriesAnother(stored, desired *workv1alpha1.Work) (object string, another bool) {
	if len(desired.Spec.Workload.Manifests) == 0 {
		return "", false
	}
	wanted, err := identifierIn(desired.Spec.Workload.Manifests[0])
	if err != nil {
		return "", false
	}
	for i, manifest := range stored.Spec.Workload.Manifests {
		carried, err := identifierIn(manifest)
		text := "an object that cannot be read"
		if err == nil {
			text = describeIdentifier(carried)
		}
		carried.Version = wanted.Version
		if err == nil && carried == wanted {
			return "", false
		}
		if i == 0 {
			object = text
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
