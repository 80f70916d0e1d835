package member

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/domain/servedkinds"
)

// discoveryWorkers is the number of group versions that are read concurrently from an API server
// without aggregated discovery. client-go would read all group versions at once.
const discoveryWorkers = 8

// readResources reads the resources of all group versions within the bounds of discovery. If
// some group versions could not be read, the error names them.
func (m *Member) readResources(ctx context.Context) ([]*metav1.APIResourceList, error) {
	groups, resources, failed, err := m.readGroups()
	if err != nil || groups == nil {
		return nil, err
	}
	if resources == nil {
		resources, failed = m.readVersions(ctx, groupVersionsOf(groups))
	}
	lists := make([]*metav1.APIResourceList, 0, len(resources))
	count := 0
	for _, version := range slices.SortedFunc(maps.Keys(resources),
		func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }) {
		lists = append(lists, resources[version])
		count += len(resources[version].APIResources)
	}
	if err := m.limitAmount(bounds.Resources, "discovery", "resources", count, m.bounds.Limits.Resources); err != nil {
		return nil, err
	}
	if len(failed) > 0 {
		return lists, &discovery.ErrGroupDiscoveryFailed{Groups: failed}
	}
	return lists, nil
}

// readGroups reads the groups and, if the member supports aggregated discovery, their resources.
func (m *Member) readGroups() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	groups, resources, failed, err := m.discovery.GroupsAndMaybeResources()
	if err != nil || groups == nil {
		return nil, nil, nil, err
	}
	err = m.limitAmount(bounds.GroupVersions, "discovery", "group versions", len(groupVersionsOf(groups)), m.bounds.Limits.GroupVersions)
	if err != nil {
		return nil, nil, nil, err
	}
	return groups, resources, failed, nil
}

// Resources reads the resources of one group version from the member. It uses no cache. The error
// matches apierrors.IsNotFound if the member does not serve the group version.
func (m *Member) Resources(ctx context.Context, version schema.GroupVersion) (*metav1.APIResourceList, error) {
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	list := &metav1.APIResourceList{GroupVersion: version.String()}
	err := m.discovery.RESTClient().Get().AbsPath(path).Do(ctx).Into(list)
	if apierrors.IsNotFound(err) && version == (schema.GroupVersion{Version: "v1"}) {
		// An aggregated API server may have no core group, so NotFound is no error here.
		return list, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the kinds of %s: %w", version, err)
	}
	return list, nil
}

// contextDiscovery is a discovery client whose requests end when the context ends.
type contextDiscovery struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	member *Member
}

// ServerResourcesForGroupVersion implements kinds.Discovery.
func (c contextDiscovery) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	parsed, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, err // it names the version
	}
	return c.member.Resources(c.ctx, parsed)
}

// GroupsAndMaybeResources implements kinds.Discovery.
func (c contextDiscovery) GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	return c.member.readGroups()
}

// queryKind asks the member by discovery whether it serves a kind now.
func (m *Member) queryKind(ctx context.Context, kind schema.GroupVersionKind) servedkinds.Availability {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	state, err := servedkinds.Lookup(contextDiscovery{ctx, m}, kind)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot determine whether the member serves a kind", "member", m.Name, "kind", kind, "cause", err)
	}
	return state
}

func groupVersionsOf(groups *metav1.APIGroupList) []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			versions = append(versions, schema.GroupVersion{Group: group.Name, Version: version.Version})
		}
	}
	return versions
}

// readVersions reads each group version from an API server without aggregated discovery. All
// requests together have the timeout of one request.
func (m *Member) readVersions(ctx context.Context,
	versions []schema.GroupVersion) (map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	var mu sync.Mutex
	var workers sync.WaitGroup
	read, failed := map[schema.GroupVersion]*metav1.APIResourceList{}, map[schema.GroupVersion]error{}
	places := make(chan struct{}, discoveryWorkers)
	for _, version := range versions {
		places <- struct{}{}
		workers.Go(func() {
			defer func() { <-places }()
			list, err := m.Resources(ctx, version)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[version] = err
				return
			}
			read[version] = list
		})
	}
	workers.Wait()
	return read, failed
}
