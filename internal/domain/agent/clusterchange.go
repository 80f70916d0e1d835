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

// ConnectionFields returns the fields of spec that describe the connection to a cluster. After the
// registration, the cluster's agent may change only these fields.
func ConnectionFields() []string {
	return []string{"apiEndpoint", "secretRef", "impersonatorSecretRef", "insecureSkipTLSVerification", "proxyURL", "proxyHeader"}
}

// validateCreation returns an error for metadata that an agent may not set even when it registers
// its cluster. These are the annotations of Karmada, because they are instructions of users to the
// control plane, and finalizers and owners, because they control the deletion of the Cluster.
func validateCreation(created *clusterv1alpha1.Cluster) field.ErrorList {
	var errs field.ErrorList
	metadata := field.NewPath("metadata")
	for _, name := range sortedKeys(created.Annotations) {
		if domain, _, _ := strings.Cut(name, "/"); domain == clusterv1alpha1.Domain || strings.HasSuffix(domain, clusterv1alpha1.DomainSuffix) {
			errs = append(errs, forbiddenError(created.Name, metadata.Child("annotations").Key(name)))
		}
	}
	if len(created.Finalizers) > 0 {
		errs = append(errs, forbiddenError(created.Name, metadata.Child("finalizers")))
	}
	if len(created.OwnerReferences) > 0 {
		errs = append(errs, forbiddenError(created.Name, metadata.Child("ownerReferences")))
	}
	return errs
}

// validateChange returns an error for each field of a stored Cluster that an agent changes without
// permission. Both arguments must have the storage form.
func validateChange(written, stored *clusterv1alpha1.Cluster) field.ErrorList {
	var errs field.ErrorList
	metadata := field.NewPath("metadata")
	if !equality.Semantic.DeepEqual(written.Labels, stored.Labels) {
		errs = append(errs, forbiddenError(stored.Name, metadata.Child("labels")))
	}
	if !equality.Semantic.DeepEqual(written.Annotations, stored.Annotations) {
		errs = append(errs, forbiddenError(stored.Name, metadata.Child("annotations")))
	}
	if !canSetFinalizers(written.Finalizers, stored) {
		errs = append(errs, forbiddenError(stored.Name, metadata.Child("finalizers")))
	}
	if !equality.Semantic.DeepEqual(written.OwnerReferences, stored.OwnerReferences) {
		errs = append(errs, forbiddenError(stored.Name, metadata.Child("ownerReferences")))
	}
	return append(errs, validateSpecChange(written, stored)...)
}

// validateSpecChange compares all fields of the spec by name. So an agent may not change a field
// that is new in the API as long as ConnectionFields does not contain the field.
func validateSpecChange(written, stored *clusterv1alpha1.Cluster) field.ErrorList {
	var errs field.ErrorList
	after, before := reflect.ValueOf(written.Spec), reflect.ValueOf(stored.Spec)
	for i := range after.NumField() {
		name, _, _ := strings.Cut(after.Type().Field(i).Tag.Get("json"), ",")
		same := equality.Semantic.DeepEqual(after.Field(i).Interface(), before.Field(i).Interface())
		if same || slices.Contains(ConnectionFields(), name) || name == "id" && stored.Spec.ID == "" {
			continue
		}
		errs = append(errs, forbiddenError(stored.Name, field.NewPath("spec", name)))
	}
	return errs
}

// canSetFinalizers reports whether an agent may set the given finalizers. The only allowed change removes
// the control plane's finalizer from a Cluster that is being deleted, which the command unregister --force
// does with the agent's credentials.
func canSetFinalizers(after []string, stored *clusterv1alpha1.Cluster) bool {
	if slices.Equal(after, stored.Finalizers) {
		return true
	}
	withoutOwn := slices.DeleteFunc(slices.Clone(stored.Finalizers),
		func(name string) bool { return name == clusterv1alpha1.ClusterControllerFinalizer })
	return stored.DeletionTimestamp != nil && slices.Equal(after, withoutOwn)
}

func forbiddenError(cluster string, path *field.Path) *field.Error {
	return field.Forbidden(path, fmt.Sprintf("the agent of a cluster may change only the status and these fields of spec: %s; an administrator changes this field with: kubectl edit cluster %s",
		strings.Join(ConnectionFields(), ", "), cluster))
}

func sortedKeys(of map[string]string) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
