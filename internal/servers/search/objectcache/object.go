package objectcache

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unique"
	"unsafe"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Source is one watched kind of one cluster. It is comparable.
type Source struct {
	Cluster string
	Kind    schema.GroupVersionKind
	// Resource is the plural name of the kind in this cluster.
	Resource   string
	Namespaced bool
}

// GroupVersionResource returns the resource under which the cluster serves the kind.
func (s Source) GroupVersionResource() schema.GroupVersionResource {
	return s.Kind.GroupVersion().WithResource(s.Resource)
}

// objectSource is what the objects of a source share.
type objectSource struct {
	Source
	codec          *codec
	maxObjectBytes int64
}

// Object is one cached object. It is immutable.
type Object struct {
	source    *objectSource
	namespace unique.Handle[string]
	labels    compactLabels
	// content holds the name, the UID if it is no UUID, the resourceVersion if it is no number,
	// and the compressed JSON. One string needs less memory than four.
	content string
	uid     uuid.UUID
	version uint64
	// created is the creation time in seconds since 1970. Zero means that there is none.
	created                uint32
	nameEnd, uidEnd, rvEnd uint32
}

// objectBytes is the memory of an object without its content.
const objectBytes = int64(unsafe.Sizeof(Object{}))

// Source returns the source of the object. All objects of a source share it.
func (o *Object) Source() *Source { return &o.source.Source }

// Namespace returns the namespace, or "" for an object without a namespace.
func (o *Object) Namespace() string { return o.namespace.Value() }

// Name returns the name.
func (o *Object) Name() string { return o.content[:o.nameEnd] }

// UID returns the UID that the member assigned.
func (o *Object) UID() types.UID {
	if text := o.content[o.nameEnd:o.uidEnd]; text != "" {
		return types.UID(text)
	}
	if o.uid == (uuid.UUID{}) {
		return ""
	}
	return types.UID(o.uid.String())
}

// ResourceVersion returns the resourceVersion that the member assigned.
func (o *Object) ResourceVersion() string {
	if text := o.content[o.uidEnd:o.rvEnd]; text != "" {
		return text
	}
	return formatVersion(o.version)
}

// Created returns the creation time. It is zero if the member did not set it.
func (o *Object) Created() time.Time {
	if o.created == 0 {
		return time.Time{}
	}
	return time.Unix(int64(o.created), 0).UTC()
}

// Labels returns the labels for labels.Selector.Matches, without an allocation.
func (o *Object) Labels() labels.Labels { return o.labels }

// AllLabels calls yield for each label, in the order of the keys, until yield returns false.
func (o *Object) AllLabels(yield func(key, value string) bool) { o.labels.All(yield) }

// Bytes returns the memory of the object: its compressed JSON and its indexed fields.
func (o *Object) Bytes() int64 { return objectBytes + int64(len(o.content)) }

// maxBytes returns the memory of the object if it shares neither its namespace nor its labels with other
// objects.
func (o *Object) maxBytes() int64 {
	return o.Bytes() + int64(len(o.namespace.Value())+o.labels.Len())
}

// AppendJSON appends the JSON of the object to dst. The JSON has no managedFields, it has the
// annotation of the cluster, and the resourceVersion is that of the member.
func (o *Object) AppendJSON(dst []byte) ([]byte, error) {
	compressed := o.content[o.rvEnd:]
	// The decoder only reads the bytes, thus the string need not be copied.
	dst, err := o.source.codec.appendDecompressed(dst, unsafe.Slice(unsafe.StringData(compressed), len(compressed)))
	if err != nil {
		return dst, o.errorf("reading", err)
	}
	return dst, nil
}

// Decode returns a new copy of the object. The caller may modify it.
func (o *Object) Decode() (*unstructured.Unstructured, error) {
	text, err := o.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	decoded := &unstructured.Unstructured{}
	if err := decoded.UnmarshalJSON(text); err != nil {
		return nil, o.errorf("decoding", err)
	}
	return decoded, nil
}

func (o *Object) errorf(operation string, err error) error {
	return fmt.Errorf("%s the cached %s %s/%s of cluster %q: %w",
		operation, o.source.Kind.Kind, o.Namespace(), o.Name(), o.source.Cluster, err)
}

// newObject encodes an object of a source. It changes the object: it removes the managedFields, and
// adds the annotation of the cluster and the kind.
func newObject(source *objectSource, object *unstructured.Unstructured) (*Object, error) {
	object.SetGroupVersionKind(source.Kind)
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.CachedFromClusterAnnotation] = source.Cluster
	object.SetAnnotations(annotations)
	text, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding the %s %s/%s of cluster %q: %w",
			source.Kind.Kind, object.GetNamespace(), object.GetName(), source.Cluster, err)
	}
	o := &Object{
		source: source, namespace: unique.Make(object.GetNamespace()), labels: newLabels(object.GetLabels()),
	}
	if created := object.GetCreationTimestamp().Unix(); created > 0 && created <= math.MaxUint32 {
		o.created = uint32(created)
	}
	if int64(len(text)) > source.maxObjectBytes {
		return nil, fmt.Errorf("%s %s/%s of cluster %q: %w", source.Kind.Kind, object.GetNamespace(), object.GetName(), source.Cluster,
			&boundError{what: "bytes in one object", limit: source.maxObjectBytes})
	}
	o.setContent(object.GetName(), string(object.GetUID()), object.GetResourceVersion(), text)
	return o, nil
}

func (o *Object) setContent(name, uid, version string, text []byte) {
	if parsed, err := uuid.Parse(uid); err == nil && parsed.String() == uid && parsed != (uuid.UUID{}) {
		o.uid, uid = parsed, ""
	}
	if number, ok := parseVersion(version); ok {
		o.version, version = number, ""
	}
	content := make([]byte, 0, len(name)+len(uid)+len(version)+len(text)/4)
	content = append(content, name...)
	o.nameEnd = uint32(len(content))
	content = append(content, uid...)
	o.uidEnd = uint32(len(content))
	content = append(content, version...)
	o.rvEnd = uint32(len(content))
	o.content = string(o.source.codec.appendCompressed(content, text))
}

// hasSameVersion reports whether two objects of a source are the same object with the same content,
// as long as the numbering of the cluster did not restart.
func (o *Object) hasSameVersion(other *Object) bool {
	if o.ResourceVersion() == "" {
		return o.hasSameContent(other)
	}
	return o.hasSameUID(other) && o.version == other.version && o.content[o.uidEnd:o.rvEnd] == other.content[other.uidEnd:other.rvEnd]
}

func (o *Object) hasSameUID(other *Object) bool {
	return o.uid == other.uid && o.content[o.nameEnd:o.uidEnd] == other.content[other.nameEnd:other.uidEnd]
}

// hasSameContent reports whether the JSON of two objects is equal.
func (o *Object) hasSameContent(other *Object) bool {
	a, errA := o.AppendJSON(nil)
	b, errB := other.AppendJSON(nil)
	return errA == nil && errB == nil && string(a) == string(b)
}

// newKey returns an object that only has a namespace and a name, to search a tree.
func newKey(namespace, name string) *Object {
	return &Object{namespace: unique.Make(namespace), content: name, nameEnd: uint32(len(name))}
}

// isLess orders objects by namespace and name, in byte order.
func isLess(a, b *Object) bool {
	if a.namespace != b.namespace {
		return a.namespace.Value() < b.namespace.Value()
	}
	return a.Name() < b.Name()
}

// compareByVersion orders objects by resourceVersion, then by namespace and name.
func compareByVersion(a, b *Object) int {
	return cmp.Or(cmp.Compare(a.version, b.version), cmp.Compare(a.Namespace(), b.Namespace()), cmp.Compare(a.Name(), b.Name()))
}
