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

// settledAfter is how old an execution namespace must be before a Work that is missing in
// it means anything. The controllers make the Works of a namespace within minutes.
const settledAfter = 10 * time.Minute

// CheckSettled returns nil if the Works of an execution namespace are all that the control
// plane wants in the cluster, as far as the namespace shows. space is nil if the namespace
// does not exist. The error says why Works may be missing.
func CheckSettled(name string, space *corev1.Namespace, now time.Time) error {
	switch {
	case space == nil:
		return fmt.Errorf("namespace %s does not exist in the control plane, so the Works of the cluster may be missing: wait until the control plane has made both again", name)
	case space.DeletionTimestamp != nil || space.Status.Phase == corev1.NamespaceTerminating:
		return fmt.Errorf("namespace %s is being deleted in the control plane, so Works of the cluster may be missing: wait until the control plane has made both again", name)
	case space.CreationTimestamp.IsZero() || now.Sub(space.CreationTimestamp.Time) < settledAfter:
		return fmt.Errorf("namespace %s was created in the control plane less than %s ago, so Works of the cluster may be missing: run the command again later", name, settledAfter)
	default:
		return nil
	}
}

// Awaited are the objects that bindings expect in some clusters, whether their Works exist
// or not.
type Awaited map[string]*awaitedIn

type awaitedIn struct {
	templates sets.Set[types.UID]
	objects   sets.Set[carriedObject]
}

// NewAwaited knows no binding yet.
func NewAwaited(clusters ...string) Awaited {
	awaited := Awaited{}
	for _, cluster := range clusters {
		awaited[cluster] = &awaitedIn{templates: sets.New[types.UID](), objects: sets.New[carriedObject]()}
	}
	return awaited
}

// Add adds what a binding expects. A binding that is being deleted counts also.
func (a Awaited) Add(spec *workv1alpha2.ResourceBindingSpec) {
	template := spec.Resource
	version, err := schema.ParseGroupVersion(template.APIVersion)
	for cluster := range binding.Expected(spec) {
		in := a[cluster]
		if in == nil {
			continue
		}
		if template.UID != "" {
			in.templates.Insert(template.UID)
		}
		if err == nil {
			in.objects.Insert(carriedObject{schema.GroupKind{Group: version.Group, Kind: template.Kind}, template.Namespace, template.Name})
		}
	}
}

// Has reports whether a binding expects an object in a cluster: by the UID of its template,
// or by kind and name if the template was made again. Metadata and kind of the object are
// enough.
func (a Awaited) Has(cluster string, observed *unstructured.Unstructured) bool {
	in := a[cluster]
	if in == nil {
		return false
	}
	uid := types.UID(observed.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation])
	return in.templates.Has(uid) ||
		in.objects.Has(carriedObject{observed.GroupVersionKind().GroupKind(), observed.GetNamespace(), observed.GetName()})
}

// ContainsOthers reports whether the deletion of an object of a kind deletes objects that
// are not of Karmada: what is in a Namespace, and what a CustomResourceDefinition defines.
func ContainsOthers(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Namespace"} ||
		kind == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
}
