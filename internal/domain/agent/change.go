package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ReachFields are the fields of spec that say how a cluster is reached. Its agent may
// change them at any time, and no other field after the registration.
func ReachFields() []string {
	return []string{"apiEndpoint", "secretRef", "impersonatorSecretRef", "insecureSkipTLSVerification", "proxyURL", "proxyHeader"}
}

// validateCreation returns what an agent may not say of its cluster even when it
// registers: annotations are orders of people to the control plane, and finalizers
// and owners decide when the Cluster goes.
func validateCreation(created *clusterv1alpha1.Cluster) field.ErrorList {
	var wrong field.ErrorList
	metadata := field.NewPath("metadata")
	for _, name := range sortedKeys(created.Annotations) {
		if domain, _, _ := strings.Cut(name, "/"); domain == "karmada.io" || strings.HasSuffix(domain, ".karmada.io") {
			wrong = append(wrong, forbidden(created.Name, metadata.Child("annotations").Key(name)))
		}
	}
	if len(created.Finalizers) > 0 {
		wrong = append(wrong, forbidden(created.Name, metadata.Child("finalizers")))
	}
	if len(created.OwnerReferences) > 0 {
		wrong = append(wrong, forbidden(created.Name, metadata.Child("ownerReferences")))
	}
	return wrong
}

// validateChange returns what an agent changes of a stored Cluster and may not. Both
// are in the form in which they are stored.
func validateChange(written, stored *clusterv1alpha1.Cluster) field.ErrorList {
	var wrong field.ErrorList
	metadata := field.NewPath("metadata")
	if !equality.Semantic.DeepEqual(written.Labels, stored.Labels) {
		wrong = append(wrong, forbidden(stored.Name, metadata.Child("labels")))
	}
	if !equality.Semantic.DeepEqual(written.Annotations, stored.Annotations) {
		wrong = append(wrong, forbidden(stored.Name, metadata.Child("annotations")))
	}
	if !finalizersMayBecome(written.Finalizers, stored) {
		wrong = append(wrong, forbidden(stored.Name, metadata.Child("finalizers")))
	}
	if !equality.Semantic.DeepEqual(written.OwnerReferences, stored.OwnerReferences) {
		wrong = append(wrong, forbidden(stored.Name, metadata.Child("ownerReferences")))
	}
	return append(wrong, validateSpecChange(written, stored)...)
}

// validateSpecChange looks at all fields of the spec by their names, so that a field
// that is added to the API belongs to people until it is named in ReachFields.
func validateSpecChange(written, stored *clusterv1alpha1.Cluster) field.ErrorList {
	var wrong field.ErrorList
	after, before := reflect.ValueOf(written.Spec), reflect.ValueOf(stored.Spec)
	for i := range after.NumField() {
		name, _, _ := strings.Cut(after.Type().Field(i).Tag.Get("json"), ",")
		same := equality.Semantic.DeepEqual(after.Field(i).Interface(), before.Field(i).Interface())
		if same || slices.Contains(ReachFields(), name) || name == "id" && stored.Spec.ID == "" {
			continue
		}
		wrong = append(wrong, forbidden(stored.Name, field.NewPath("spec", name)))
	}
	return wrong
}

// finalizersMayBecome reports whether an agent may leave the Cluster with these
// finalizers: unregister --force takes that of the control plane off a Cluster that is
// being deleted.
func finalizersMayBecome(after []string, stored *clusterv1alpha1.Cluster) bool {
	if slices.Equal(after, stored.Finalizers) {
		return true
	}
	rest := slices.DeleteFunc(slices.Clone(stored.Finalizers), func(name string) bool { return name == clusterv1alpha1.ClusterControllerFinalizer })
	return stored.DeletionTimestamp != nil && slices.Equal(after, rest)
}

func forbidden(cluster string, path *field.Path) *field.Error {
	return field.Forbidden(path, fmt.Sprintf("the agent of a cluster changes its status and of spec only how the cluster is reached (%s); a person changes this with: kubectl edit cluster %s",
		strings.Join(ReachFields(), ", "), cluster))
}

func sortedKeys(of map[string]string) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
