package objectcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/watches"
)

const (
	// concurrentPages is the number of pages of all clusters that are read at the same time, because a
	// decoded page needs much more memory than its compressed objects.
	concurrentPages = 6
	// maxPageSlotTime is the time after which a page that is still being read does not count anymore,
	// so that a member that does not respond does not delay other members.
	maxPageSlotTime = 2 * time.Second
)

// maxNameBytes limits names and namespaces, as API servers do for most kinds.
const maxNameBytes = 253

// errUnexpectedResponse reports an object that the member must not return for the request.
var errUnexpectedResponse = errors.New("the member responds with something else than was requested")

func (s Source) describe() string {
	return fmt.Sprintf("%s of cluster %q", s.GroupVersionResource().GroupResource(), s.Cluster)
}

// memberSink compresses the objects of a member and stores them. Only the loop of the watch uses it.
type memberSink struct {
	*sourceWatch
	// member is the connection to which source belongs.
	member *member.Member
	source *watches.Source
	// writer stores the objects. It belongs to source.
	writer *Writer

	// releasePage returns the slot of the page that is being read. pageVersion is its resource version.
	releasePage func()
	pageVersion string
	// listed contains the objects of the current list. reserved is the memory of those that are not
	// cached yet.
	listed                []*Object
	listedBytes, reserved int64
}

// errNotServed reports that a member does not serve a kind.
var errNotServed = errors.New("the cluster does not serve the kind")

// discoverSource returns the source of a kind as the member currently serves it. The error matches
// errNotServed if the member does not serve the kind, or does not support list and watch of the kind.
func discoverSource(ctx context.Context, from *member.Member, kind schema.GroupVersionKind) (Source, error) {
	list, err := from.Resources(ctx, kind.GroupVersion())
	if apierrors.IsNotFound(err) {
		return Source{}, fmt.Errorf("cluster %q, %s in %s: %w", from.Name, kind.Kind, kind.GroupVersion(), errNotServed)
	}
	if err != nil {
		return Source{}, fmt.Errorf("listing the kinds of %s in cluster %q: %w", kind.GroupVersion(), from.Name, err)
	}
	for _, resource := range list.APIResources {
		if resource.Kind != kind.Kind || strings.Contains(resource.Name, "/") {
			continue
		}
		if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "watch") {
			return Source{}, fmt.Errorf("cluster %q offers no list and watch of %s in %s: %w", from.Name, kind.Kind, kind.GroupVersion(),
				errNotServed)
		}
		return Source{Cluster: from.Name, Kind: kind, Resource: resource.Name, Namespaced: resource.Namespaced}, nil
	}
	return Source{}, fmt.Errorf("cluster %q, %s in %s: %w", from.Name, kind.Kind, kind.GroupVersion(), errNotServed)
}

// open returns the source of the objects. It looks up the kind again if the objects must be listed again,
// or if the connection changed, because it may lead to another cluster.
func (m *memberSink) open(ctx context.Context) (*watches.Source, error) {
	m.mu.Lock()
	cluster, isOutdated := m.cluster, m.needsNewList || m.source == nil || m.sourceWatch.writer != m.writer
	m.mu.Unlock()
	opened, err := m.cache.options.Members.GetForCluster(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w", cluster.Name, err)
	}
	if opened == m.member && !isOutdated {
		return m.source, nil
	}
	objects, err := opened.DynamicClient()
	if err != nil {
		return nil, err
	}
	source, err := discoverSource(ctx, opened, m.kind)
	if err != nil {
		return nil, err
	}
	writer, err := m.setSource(source, true)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.needsNewList = false
	m.mu.Unlock()
	m.member, m.writer = opened, writer
	resource := objects.Resource(source.GroupVersionResource())
	m.source = watches.NewSource(resource, source.describe(), "", "", opened.Bounds())
	m.source.PageSize = m.cache.options.PageSize
	m.source.ListPage = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if err := m.acquirePage(ctx); err != nil {
			return nil, err
		}
		page, err := resource.List(ctx, o)
		if err != nil {
			m.releasePage()
			return nil, err
		}
		m.pageVersion = page.GetResourceVersion()
		return page, nil
	}
	return m.source, nil
}

// acquirePage waits until a page may be read. The previous page of the source is complete.
func (m *memberSink) acquirePage(ctx context.Context) error {
	if m.releasePage != nil {
		m.releasePage()
	}
	slots := m.cache.evaluator.pageSlots
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	release := sync.OnceFunc(func() { <-slots })
	early := time.AfterFunc(maxPageSlotTime, release)
	m.releasePage = func() {
		early.Stop()
		release()
	}
	return nil
}

// BeginList implements watches.Sink, as do the methods below.
func (m *memberSink) BeginList() { m.listed, m.listedBytes = nil, 0 }

// AddListed compresses a listed object.
func (m *memberSink) AddListed(listed runtime.Object) error {
	object, err := m.validate(listed)
	if err != nil {
		return err
	}
	// After the resource versions of the member restarted, the same version may stand for another
	// content.
	encoded := (*Object)(nil)
	if !IsOlder(m.pageVersion, m.writer.ResourceVersion()) {
		encoded = m.writer.reuse(object)
	}
	if encoded == nil {
		if encoded, err = m.reserve(object); err != nil {
			return err
		}
	}
	// The decoded object is not needed anymore.
	object.Object = nil
	m.listed, m.listedBytes = append(m.listed, encoded), m.listedBytes+encoded.maxBytes()
	return m.cache.options.limitSource(len(m.listed), m.listedBytes)
}

// reserve compresses an object, and counts its memory until the list ends.
func (m *memberSink) reserve(object *unstructured.Unstructured) (*Object, error) {
	encoded, err := m.writer.Encode(object)
	if err != nil {
		return nil, err
	}
	cluster, bytes := m.writer.Source().Cluster, encoded.maxBytes()
	if err := m.cache.budget.check(cluster, bytes); err != nil {
		return nil, err
	}
	m.cache.budget.add(cluster, bytes)
	m.reserved += bytes
	return encoded, nil
}

// EndList stores the objects of a complete list.
func (m *memberSink) EndList(err error) {
	if m.releasePage != nil {
		m.releasePage()
	}
	m.cache.budget.add(m.writer.Source().Cluster, -m.reserved)
	listed := m.listed
	m.listed, m.reserved = nil, 0
	// The objects of a watch that was stopped meanwhile must not become Current.
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.isRunning {
		m.writer.Replace(listed, m.pageVersion)
	}
}

// Apply stores a changed object, or removes a deleted one.
func (m *memberSink) Apply(event watch.Event) error {
	if event.Type == watch.Bookmark {
		if object, ok := event.Object.(*unstructured.Unstructured); ok {
			m.writer.Bookmark(object.GetResourceVersion())
		}
		return nil
	}
	object, err := m.validate(event.Object)
	if err != nil {
		return err
	}
	if event.Type == watch.Deleted {
		m.writer.Remove(object.GetNamespace(), object.GetName(), object.GetResourceVersion())
		return nil
	}
	encoded, err := m.writer.Encode(object)
	if err != nil {
		return err
	}
	if err := m.writer.limitGrowth(encoded); err != nil {
		return err
	}
	m.writer.Set(encoded)
	return m.cache.options.limitSource(m.writer.held())
}

// validate returns an error for an object of another kind, or without a valid name.
func (m *memberSink) validate(received runtime.Object) (*unstructured.Unstructured, error) {
	source := m.writer.Source()
	object, ok := received.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%s: an object of type %T: %w", source.describe(), received, errUnexpectedResponse)
	}
	if got := object.GroupVersionKind(); got != source.Kind {
		return nil, fmt.Errorf("%s: an object of kind %q: %w", source.describe(), got, errUnexpectedResponse)
	}
	name, namespace := object.GetName(), object.GetNamespace()
	if name == "" || len(name) > maxNameBytes || len(namespace) > maxNameBytes || (namespace != "") != source.Namespaced {
		return nil, fmt.Errorf("%s: an object with the name %q in the namespace %q: %w", source.describe(), name, namespace,
			errUnexpectedResponse)
	}
	return object, nil
}
