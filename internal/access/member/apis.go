package member

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/discovery"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// apiCache stores the APIs of a member and the ETags of the discovery responses. If the API server
// still returns these ETags, the APIs are not read again, because they seldom change and reading
// all of them takes 100 times as long as reading the ETags.
type apiCache struct {
	mu          sync.Mutex
	etags       map[string]string
	enablements []clusterv1alpha1.APIEnablement
	complete    bool
}

// apiRoots are the paths of the discovery documents.
var apiRoots = []string{"/api", "/apis"}

// APIs returns the APIs that the member serves. If some groups are unknown, complete is false and
// err is the cause. The caller may modify the result.
func (m *Member) APIs(ctx context.Context) (enablements []clusterv1alpha1.APIEnablement, complete bool, err error) {
	cached := &m.apis
	cached.mu.Lock()
	defer cached.mu.Unlock()
	tags := m.readETags(ctx)
	if cached.isCurrent(tags) {
		return cloneEnablements(cached.enablements), cached.complete, nil
	}
	lists, err := m.readResources(ctx)
	cached.enablements, cached.complete = domain.APIEnablements(lists), err == nil
	// The ETags were read before the APIs, so the next call notices a change in between.
	cached.etags = tags
	if err != nil || len(lists) == 0 {
		// The ETags are dropped, because a group that failed may work at the next call although the
		// ETag is the same.
		cached.etags = nil
	}
	if err != nil {
		err = fmt.Errorf("reading the APIs of member %q: %w", m.Name, err)
	}
	return cloneEnablements(cached.enablements), cached.complete, err
}

// isCurrent reports whether the API server still serves the APIs that the cache holds.
func (a *apiCache) isCurrent(tags map[string]string) bool {
	if len(a.etags) != len(apiRoots) || len(tags) != len(apiRoots) {
		return false
	}
	for _, root := range apiRoots {
		if tags[root] != a.etags[root] {
			return false
		}
	}
	return true
}

// readETags returns the current ETags of the API server. It returns nil if the response for a root
// has no ETag, as in API servers before Kubernetes 1.26.
func (m *Member) readETags(ctx context.Context) map[string]string {
	found := map[string]string{}
	for _, root := range apiRoots {
		tag, err := m.readETag(ctx, root)
		if err != nil || tag == "" {
			return nil
		}
		found[root] = tag
	}
	return found
}

func (m *Member) readETag(ctx context.Context, root string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.discovery.RESTClient().Get().AbsPath(root).URL().String(), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("reading the version of the APIs of member %q: %w", m.Name, err)
	}
	request.Header.Set("Accept", discovery.AcceptV2)
	if cached := m.apis.etags[root]; cached != "" {
		request.Header.Set("If-None-Match", cached)
	}
	response, err := m.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("reading the version of the APIs of member %q: %w", m.Name, err)
	}
	defer response.Body.Close()
	// The body is read to its end so that the connection can be reused.
	_, _ = io.Copy(io.Discard, response.Body)
	switch response.StatusCode {
	case http.StatusNotModified:
		return m.apis.etags[root], nil
	case http.StatusOK:
		return response.Header.Get("ETag"), nil
	default:
		return "", nil
	}
}

func cloneEnablements(enablements []clusterv1alpha1.APIEnablement) []clusterv1alpha1.APIEnablement {
	copies := slices.Clone(enablements)
	for i := range copies {
		copies[i].Resources = slices.Clone(copies[i].Resources)
	}
	return copies
}
