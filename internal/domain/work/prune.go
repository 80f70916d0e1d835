package work

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// serverOwnedFields are the metadata fields that an API server or a garbage collector owns. These
// fields have no meaning in another cluster. There, owners would even cause the object's deletion, and
// finalizers would prevent it.
var serverOwnedFields = []string{
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
}

// Prune removes from object, in place, the fields that belong to the cluster from which it was read:
// the status, the fields that the API server sets, and the fields that the cluster's controllers set.
// It also removes maps that become empty, so that the object equals an object that never had them.
// Kinds are identified by name, without the group.
func Prune(object *unstructured.Unstructured) {
	root := object.Object
	delete(root, "status")
	for _, field := range serverOwnedFields {
		removeField(root, "metadata", field)
	}
	switch object.GetKind() {
	case "Deployment":
		removeField(root, "metadata", "annotations", "deployment.kubernetes.io/revision")
		removeField(root, "metadata", "annotations", "deployment.kubernetes.io/revision-history")
	case "Job":
		pruneJob(root)
	case "Secret":
		pruneSecret(root)
	case "ServiceAccount":
		pruneServiceAccount(root, object.GetName())
	case "Service":
		pruneService(root)
	case "PersistentVolumeClaim":
		removeField(root, "metadata", "annotations", "volume.kubernetes.io/selected-node")
	}
}

// pruneJob removes the selector that the API server generates, unless the user sets the selector
// (manualSelector). It also removes ttlSecondsAfterFinished, which applies only in the control
// plane: in a member it would delete the Job, and the Job would then be created again.
func pruneJob(root map[string]any) {
	removeField(root, "spec", "ttlSecondsAfterFinished")
	if manual, _, _ := unstructured.NestedBool(root, "spec", "manualSelector"); manual {
		return
	}
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		removeField(root, "spec", "selector", "matchLabels", label)
		removeField(root, "spec", "template", "metadata", "labels", label)
	}
	for _, label := range []string{"job-name", "batch.kubernetes.io/job-name"} {
		removeField(root, "spec", "template", "metadata", "labels", label)
	}
}

// pruneSecret removes a ServiceAccount's token, because the token is valid in one cluster only.
func pruneSecret(root map[string]any) {
	if root["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	removeField(root, "metadata", "annotations", corev1.ServiceAccountUIDKey)
	root["data"] = nil
}

// pruneServiceAccount removes references to generated token secrets.
func pruneServiceAccount(root map[string]any, name string) {
	secrets, ok := root["secrets"].([]any)
	if !ok {
		return
	}
	kept := make([]any, 0, len(secrets))
	for _, entry := range secrets {
		reference, _ := entry.(map[string]any)
		secret, _ := reference["name"].(string)
		if !strings.HasPrefix(secret, name+"-token-") {
			kept = append(kept, entry)
		}
	}
	switch {
	case len(kept) == len(secrets):
	case len(kept) == 0:
		delete(root, "secrets")
	default:
		root["secrets"] = kept
	}
}

// pruneService removes allocated addresses. It keeps the address None, because the user sets this
// address for a headless Service.
func pruneService(root map[string]any) {
	if address, _, _ := unstructured.NestedString(root, "spec", "clusterIP"); address == corev1.ClusterIPNone {
		return
	}
	removeField(root, "spec", "clusterIP")
	removeField(root, "spec", "clusterIPs")
}

// removeField deletes the field at path and the maps that become empty as a result. It reports whether
// the field existed.
func removeField(parent map[string]any, path ...string) bool {
	value, found := parent[path[0]]
	if !found {
		return false
	}
	if len(path) == 1 {
		delete(parent, path[0])
		return true
	}
	child, ok := value.(map[string]any)
	if !ok || !removeField(child, path[1:]...) {
		return false
	}
	if len(child) == 0 {
		delete(parent, path[0])
	}
	return true
}
