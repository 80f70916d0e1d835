package objectcache

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// clusterScopedKinds are all built-in kinds without namespaces that can be listed.
var clusterScopedKinds = map[schema.GroupKind]bool{
	{Kind: "Node"}: true, {Kind: "Namespace"}: true, {Kind: "PersistentVolume"}: true, {Kind: "ComponentStatus"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                  true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                   true,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                                      true,
	{Group: "storage.k8s.io", Kind: "CSINode"}:                                        true,
	{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:                               true,
	{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}:                          true,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:               true,
	{Group: "internal.apiserver.k8s.io", Kind: "StorageVersion"}:                      true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                               true,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:                                true,
	{Group: "networking.k8s.io", Kind: "IPAddress"}:                                   true,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                                 true,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                                      true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                       true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}:       true,
	{Group: "resource.k8s.io", Kind: "DeviceClass"}:                                   true,
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                               true,
	{Group: "resource.k8s.io", Kind: "ResourcePoolStatusRequest"}:                     true,
	{Group: "resource.k8s.io", Kind: "ResourceSlice"}:                                 true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:                 true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                             true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:                 true,
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:                        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:   true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:     true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}:          true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"}:   true,
}

// isClusterScoped reports whether a built-in kind has no namespaces. Until a member responds, the scope
// of other kinds is unknown.
func isClusterScoped(kind schema.GroupVersionKind) bool { return clusterScopedKinds[kind.GroupKind()] }

// isBuiltIn reports whether a kind is a part of Kubernetes. Then its resource and scope are known, and a
// member cannot change them: otherwise a member could make users see Secrets who may only list Pods.
func isBuiltIn(kind schema.GroupKind) bool { return builtInKinds()[kind] != "" }

// builtInResource returns the resource of a kind, if the kind is built-in.
func builtInResource(kind schema.GroupVersionKind) (resource string, ok bool) {
	resource, ok = builtInKinds()[kind.GroupKind()]
	return resource, ok
}

// usualResource returns the plural that a kind has by default.
func usualResource(kind schema.GroupVersionKind) string {
	if kind.Kind == "Endpoints" {
		return "endpoints"
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

// builtInKinds returns the resources of all built-in kinds.
var builtInKinds = sync.OnceValue(func() map[schema.GroupKind]string {
	resources := map[schema.GroupKind]string{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		resources[kind.GroupKind()] = usualResource(kind)
	}
	for kind := range clusterScopedKinds {
		resources[kind] = usualResource(kind.WithVersion(""))
	}
	return resources
})

// builtInOwners returns the kind of each built-in resource.
var builtInOwners = sync.OnceValue(func() map[schema.GroupResource]string {
	owners := map[schema.GroupResource]string{}
	for kind, resource := range builtInKinds() {
		owners[schema.GroupResource{Group: kind.Group, Resource: resource}] = kind.Kind
	}
	return owners
})

// renamedError reports that a cluster serves a kind as another resource, or with another scope, than the
// kind is cached as.
type renamedError struct {
	source Source
	// resource and namespaced are those of the kind. owner is another kind that has the resource of
	// the source. It is empty if there is none.
	resource   string
	namespaced bool
	owner      string
}

func (e *renamedError) Error() string {
	if e.owner != "" {
		return fmt.Sprintf("cluster %q serves %s in %s as the resource %q, which is the resource of %s: its objects are not cached",
			e.source.Cluster, e.source.Kind.Kind, e.source.Kind.GroupVersion(), e.source.Resource, e.owner)
	}
	return fmt.Sprintf("cluster %q serves %s in %s as the %s resource %q, but it is cached as the %s resource %q: its objects are not cached",
		e.source.Cluster, e.source.Kind.Kind, e.source.Kind.GroupVersion(), describeScope(e.source.Namespaced), e.source.Resource,
		describeScope(e.namespaced), e.resource)
}

// Is makes the error match errNotServed.
func (e *renamedError) Is(target error) bool { return target == errNotServed }

func describeScope(namespaced bool) string {
	if namespaced {
		return "namespaced"
	}
	return "cluster-scoped"
}

// admit adds a source, unless the cluster would rename the kind or change its scope. The resource and
// scope of a built-in kind are fixed. Another kind keeps those of the first cluster that was asked, as
// long as that cluster has the kind. isKnown is false if the source is only a guess.
func (c *Cache) admit(k *Kind, source Source, namespaces []string, isKnown bool) (*Writer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	isChanged, err := c.admitSource(k, source, isKnown)
	if err != nil {
		return nil, err
	}
	if isChanged {
		k.mu.Lock()
		k.resource, k.namespaced = source.Resource, source.Namespaced
		k.mu.Unlock()
		c.publish()
	}
	writer := k.AddCluster(source, namespaces)
	if isKnown {
		k.mu.Lock()
		writer.source.isKnown = true
		k.mu.Unlock()
	}
	return writer, nil
}

// admitSource returns an error if a cluster must not serve the kind as it does, and otherwise reports
// whether the kind must take the resource and scope of the source. c.mu is locked.
func (c *Cache) admitSource(k *Kind, source Source, isKnown bool) (isChanged bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.resource == source.Resource && k.namespaced == source.Namespaced {
		return false, nil
	}
	renamed := &renamedError{source: source, resource: k.resource, namespaced: k.namespaced}
	if isBuiltIn(k.kind.GroupKind()) {
		return false, renamed
	}
	for cluster, other := range k.sources {
		if cluster != source.Cluster && (other.isKnown || !isKnown) {
			return false, renamed
		}
	}
	if k.resource == source.Resource {
		return true, nil
	}
	resource := source.GroupVersionResource()
	renamed.owner = builtInOwners()[resource.GroupResource()]
	if owner := c.byResource[resource]; owner != nil && owner != k {
		renamed.owner = owner.kind.Kind
	}
	if renamed.owner != "" {
		return false, renamed
	}
	return true, nil
}
