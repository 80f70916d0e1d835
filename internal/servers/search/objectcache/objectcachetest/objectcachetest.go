// Package objectcachetest builds caches of member objects for tests, without members.
package objectcachetest

import (
	"fmt"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Kind describes a kind of the cache.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Namespaced bool
}

// Kinds for tests.
var (
	Pods        = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true}
	ConfigMaps  = Kind{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true}
	Nodes       = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, "nodes", false}
	Namespaces  = Kind{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false}
	Deployments = Kind{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", true}
)

// Cache is a cache whose objects the test sets.
type Cache struct {
	*objectcache.Cache
	t testing.TB

	mu       sync.Mutex
	kinds    map[schema.GroupVersionKind]Kind
	writers  map[objectcache.Source]*objectcache.Writer
	versions map[string]int
}

// New returns a cache with kinds and without clusters. Cache.Evaluated is closed.
func New(t testing.TB, kinds ...Kind) *Cache {
	t.Helper()
	return NewWithOptions(t, objectcache.Options{}, kinds...)
}

// NewWithOptions returns a cache with options, for example with a short log.
func NewWithOptions(t testing.TB, options objectcache.Options, kinds ...Kind) *Cache {
	t.Helper()
	cache, err := objectcache.New(options)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cache{
		Cache: cache, t: t, kinds: map[schema.GroupVersionKind]Kind{},
		writers: map[objectcache.Source]*objectcache.Writer{}, versions: map[string]int{},
	}
	for _, kind := range kinds {
		c.AddKind(kind)
	}
	cache.SetEvaluated()
	return c
}

// AddKind adds a kind without clusters.
func (c *Cache) AddKind(kind Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[kind.GroupVersionKind] = kind
	c.SetKind(kind.GroupVersionKind, kind.Resource, kind.Namespaced)
}

// AddCluster adds a cluster to a kind. Its state is Waiting until the first Put, Delete or List.
// namespaces restrict the proxy. Without namespaces, there is no restriction.
func (c *Cache) AddCluster(cluster string, kind Kind, namespaces ...string) *objectcache.Writer {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.addCluster(cluster, kind, namespaces)
}

func (c *Cache) addCluster(cluster string, kind Kind, namespaces []string) *objectcache.Writer {
	c.t.Helper()
	k := c.KindOf(kind.GroupVersionKind)
	if k == nil {
		c.t.Fatalf("the test cache has no kind %s: pass it to New", kind.Kind)
	}
	writer := k.AddCluster(sourceOf(cluster, kind), namespaces)
	c.writers[sourceOf(cluster, kind)] = writer
	return writer
}

func sourceOf(cluster string, kind Kind) objectcache.Source {
	return objectcache.Source{Cluster: cluster, Kind: kind.GroupVersionKind, Resource: kind.Resource, Namespaced: kind.Namespaced}
}

// writer returns the writer of a source. It adds the cluster if needed.
func (c *Cache) writer(cluster string, kind Kind) *objectcache.Writer {
	c.t.Helper()
	if writer := c.writers[sourceOf(cluster, kind)]; writer != nil {
		return writer
	}
	return c.addCluster(cluster, kind, nil)
}

// RemoveCluster removes a cluster from a kind.
func (c *Cache) RemoveCluster(cluster string, kind Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.writers, sourceOf(cluster, kind))
	c.KindOf(kind.GroupVersionKind).RemoveCluster(cluster)
}

// Put adds or changes objects of a cluster, as the watch of a member does. It adds the cluster if
// needed. Objects without resourceVersion get the next one of the cluster, objects without UID get
// one that depends on cluster, kind and name. Put does not modify its arguments.
func (c *Cache) Put(cluster string, objects ...*unstructured.Unstructured) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, object := range objects {
		writer := c.listedWriter(cluster, c.kindOf(object))
		writer.Set(c.encode(cluster, writer, object))
	}
}

// Delete deletes objects by kind, namespace and name, as the watch of a member does.
func (c *Cache) Delete(cluster string, objects ...*unstructured.Unstructured) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, object := range objects {
		c.listedWriter(cluster, c.kindOf(object)).Remove(object.GetNamespace(), object.GetName(), c.nextVersion(cluster))
	}
}

// DeleteAt deletes an object, as Delete does. version is the resourceVersion of the deletion.
func (c *Cache) DeleteAt(cluster string, object *unstructured.Unstructured, version string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listedWriter(cluster, c.kindOf(object)).Remove(object.GetNamespace(), object.GetName(), version)
}

// List replaces the objects of a kind by a complete list with a resourceVersion. An empty
// resourceVersion is the next one of the cluster. Objects without resourceVersion get that of the list.
func (c *Cache) List(cluster string, kind Kind, version string, objects ...*unstructured.Unstructured) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if version == "" {
		version = c.nextVersion(cluster)
	}
	writer := c.writer(cluster, kind)
	list := make([]*objectcache.Object, 0, len(objects))
	for _, object := range objects {
		if object.GetResourceVersion() == "" {
			object = object.DeepCopy()
			object.SetResourceVersion(version)
		}
		list = append(list, c.encode(cluster, writer, object))
	}
	if number, err := strconv.Atoi(version); err == nil {
		c.versions[cluster] = number
	}
	writer.Replace(list, version)
}

// SetState changes the state of a kind in a cluster. Current lists an empty list if nothing was listed.
func (c *Cache) SetState(cluster string, kind Kind, state objectcache.State, reason string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	writer := c.writer(cluster, kind)
	if state != objectcache.Waiting {
		writer = c.listedWriter(cluster, kind)
	}
	writer.SetState(state, reason)
}

// Bookmark records that the objects of a kind are those of a resourceVersion.
func (c *Cache) Bookmark(cluster string, kind Kind, version string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writer(cluster, kind).Bookmark(version)
}

// listedWriter returns the writer of a source that was listed.
func (c *Cache) listedWriter(cluster string, kind Kind) *objectcache.Writer {
	c.t.Helper()
	writer := c.writer(cluster, kind)
	if writer.ResourceVersion() == "" {
		writer.Replace(nil, c.nextVersion(cluster))
	}
	return writer
}

func (c *Cache) kindOf(object *unstructured.Unstructured) Kind {
	c.t.Helper()
	kind, found := c.kinds[object.GroupVersionKind()]
	if !found {
		c.t.Fatalf("the test cache has no kind %s: pass it to New", object.GroupVersionKind())
	}
	return kind
}

func (c *Cache) nextVersion(cluster string) string {
	c.versions[cluster]++
	return strconv.Itoa(c.versions[cluster])
}

func (c *Cache) encode(cluster string, writer *objectcache.Writer, object *unstructured.Unstructured) *objectcache.Object {
	c.t.Helper()
	object = object.DeepCopy()
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("%s-%s-%s-%s", cluster, object.GetKind(), object.GetNamespace(), object.GetName())))
	}
	if object.GetResourceVersion() == "" {
		object.SetResourceVersion(c.nextVersion(cluster))
	}
	if number, err := strconv.Atoi(object.GetResourceVersion()); err == nil {
		c.versions[cluster] = max(c.versions[cluster], number)
	}
	encoded, err := writer.Encode(object)
	if err != nil {
		c.t.Fatal(err)
	}
	return encoded
}
