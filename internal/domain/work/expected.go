package work

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// minNamespaceAge is the age from which an execution namespace is expected to contain all Works. The
// controllers create a namespace's Works within minutes.
const minNamespaceAge = 10 * time.Minute

// VerifyWorksComplete returns nil if the execution namespace's state indicates that the namespace
// contains all Works of the cluster. Otherwise the error describes why Works may be missing. namespace
// is nil if the namespace does not exist.
func VerifyWorksComplete(name string, namespace *corev1.Namespace, now time.Time) error {
	switch {
	case namespace == nil:
		return fmt.Errorf("namespace %s does not exist in the control plane, so the Works of the cluster may be missing: wait until the control plane has created both again", name)
	case namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating:
		return fmt.Errorf("namespace %s is being deleted in the control plane, so Works of the cluster may be missing: wait until the control plane has created both again", name)
	case namespace.CreationTimestamp.IsZero() || now.Sub(namespace.CreationTimestamp.Time) < minNamespaceAge:
		return fmt.Errorf("namespace %s was created in the control plane less than %s ago, so Works of the cluster may be missing: run the command again later", name, minNamespaceAge)
	default:
		return nil
	}
}

// ExpectedObjects are the objects that bindings expect in the given clusters, regardless of whether the
// bindings' Works exist.
type ExpectedObjects map[string]*expectedInCluster

type expectedInCluster struct {
	templates sets.Set[types.UID]
	objects   sets.Set[objectKey]
}

// NewExpectedObjects returns an empty set for the given clusters. Objects in other clusters are not
// recorded.
func NewExpectedObjects(clusters ...string) ExpectedObjects {
	awaited := ExpectedObjects{}
	for _, cluster := range clusters {
		awaited[cluster] = &expectedInCluster{templates: sets.New[types.UID](), objects: sets.New[objectKey]()}
	}
	return awaited
}

// AddBinding adds the objects that the binding expects, even if the binding is in deletion.
func (e ExpectedObjects) AddBinding(spec *workv1alpha2.ResourceBindingSpec) {
	template := spec.Resource
	version, err := schema.ParseGroupVersion(template.APIVersion)
	for cluster := range binding.ExpectedClusters(spec) {
		in := e[cluster]
		if in == nil {
			continue
		}
		if template.UID != "" {
			in.templates.Insert(template.UID)
		}
		if err == nil {
			in.objects.Insert(objectKey{schema.GroupKind{Group: version.Group, Kind: template.Kind}, template.Namespace, template.Name})
		}
	}
}

// Has reports whether a binding expects the observed object in the cluster. It compares the UID of the
// template. If the UID differs, it compares the kind, namespace and name, because the template may have
// been deleted and created again. Has reads only the object's metadata and kind.
func (e ExpectedObjects) Has(cluster string, observed *unstructured.Unstructured) bool {
	in := e[cluster]
	if in == nil {
		return false
	}
	uid := types.UID(observed.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation])
	return in.templates.Has(uid) ||
		in.objects.Has(objectKey{observed.GroupVersionKind().GroupKind(), observed.GetNamespace(), observed.GetName()})
}

// DeletionCascades reports whether deleting an object of the given kind also deletes objects that
// Karmada does not manage: the objects in a Namespace, or the objects of a CustomResourceDefinition.
func DeletionCascades(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} ||
		kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}
