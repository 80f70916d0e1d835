package work

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// bookkeeping are the metadata fields that an API server or a garbage collector
// owns. They mean nothing in another cluster; owners and finalizers would even
// make the object vanish, or never vanish, there.
var bookkeeping = []string{
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid", "ownerReferences", "finalizers",
}

// Prune removes from object, in place, what belongs to the cluster it was read
// from: status, bookkeeping, and what controllers of that cluster filled in. Maps
// that this leaves empty go too, so that an object which never had them is equal.
// Kinds are told by name alone.
func Prune(object *unstructured.Unstructured) {
	root := object.Object
	delete(root, "status")
	for _, field := range bookkeeping {
		remove(root, "metadata", field)
	}
	switch object.GetKind() {
	case "Deployment":
		remove(root, "metadata", "annotations", "deployment.kubernetes.io/revision")
		remove(root, "metadata", "annotations", "deployment.kubernetes.io/revision-history")
	case "Job":
		pruneJob(root)
	case "Secret":
		pruneSecret(root)
	case "ServiceAccount":
		pruneServiceAccount(root, object.GetName())
	case "Service":
		pruneService(root)
	case "PersistentVolumeClaim":
		remove(root, "metadata", "annotations", "volume.kubernetes.io/selected-node")
	}
}

// pruneJob drops the selector that the API server generates, unless the user
// keeps the selector himself. A time to live counts in the control plane only:
// in a member it would delete the Job, which would then be created anew.
func pruneJob(root map[string]any) {
	remove(root, "spec", "ttlSecondsAfterFinished")
	if manual, _, _ := unstructured.NestedBool(root, "spec", "manualSelector"); manual {
		return
	}
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		remove(root, "spec", "selector", "matchLabels", label)
		remove(root, "spec", "template", "metadata", "labels", label)
	}
	for _, label := range []string{"job-name", "batch.kubernetes.io/job-name"} {
		remove(root, "spec", "template", "metadata", "labels", label)
	}
}

// pruneSecret empties a service account's token, which is valid in one cluster.
func pruneSecret(root map[string]any) {
	if root["type"] != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	remove(root, "metadata", "annotations", corev1.ServiceAccountUIDKey)
	root["data"] = nil
}

// pruneServiceAccount drops references to generated token secrets.
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

// pruneService drops allocated addresses. None is no address but a wish.
func pruneService(root map[string]any) {
	if address, _, _ := unstructured.NestedString(root, "spec", "clusterIP"); address == corev1.ClusterIPNone {
		return
	}
	remove(root, "spec", "clusterIP")
	remove(root, "spec", "clusterIPs")
}

// remove deletes the field at path and the maps that are empty without it. It
// tells whether there was anything to delete.
func remove(parent map[string]any, path ...string) bool {
	value, found := parent[path[0]]
	if !found {
		return false
	}
	if len(path) == 1 {
		delete(parent, path[0])
		return true
	}
	child, ok := value.(map[string]any)
	if !ok || !remove(child, path[1:]...) {
		return false
	}
	if len(child) == 0 {
		delete(parent, path[0])
	}
	return true
}
