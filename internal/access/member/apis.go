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

// apis are the APIs of a member as they were read last, and the tags under which
// its server gave them. A server that still has those tags is not asked again: what
// it serves seldom changes, and to read it all takes a hundred times as long.
type apis struct {
	mu          sync.Mutex
	tags        map[string]string
	enablements []clusterv1alpha1.APIEnablement
	complete    bool
}

// apiRoots are the paths under which all APIs are described.
var apiRoots = []string{"/api", "/apis"}

// APIs are the APIs that the member serves. complete is false, and an error says
// why, when some groups are not known. The answer is the caller's.
func (m *Member) APIs(ctx context.Context) (enablements []clusterv1alpha1.APIEnablement, complete bool, err error) {
	known := &m.apis
	known.mu.Lock()
	defer known.mu.Unlock()
	tags := m.tags(ctx)
	if known.current(tags) {
		return cloned(known.enablements), known.complete, nil
	}
	lists, err := m.resources(ctx)
	known.enablements, known.complete = domain.Enablements(lists), err == nil
	// The tags are those of before: what has changed since is read next time.
	known.tags = tags
	if err != nil || len(lists) == 0 {
		// A group that failed may work next time under the same tag.
		known.tags = nil
	}
	if err != nil {
		err = fmt.Errorf("asking member %q for its APIs: %w", m.Name, err)
	}
	return cloned(known.enablements), known.complete, err
}

// current tells that the server still has what was read.
func (a *apis) current(tags map[string]string) bool {
	if len(a.tags) != len(apiRoots) || len(tags) != len(apiRoots) {
		return false
	}
	for _, root := range apiRoots {
		if tags[root] != a.tags[root] {
			return false
		}
	}
	return true
}

// tags are the tags of what the server has now; fewer than roots when it gives
// none, as servers older than Kubernetes 1.26 do.
func (m *Member) tags(ctx context.Context) map[string]string {
	found := map[string]string{}
	for _, root := range apiRoots {
		tag, err := m.tag(ctx, root)
		if err != nil || tag == "" {
			return nil
		}
		found[root] = tag
	}
	return found
}

func (m *Member) tag(ctx context.Context, root string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.discovery.RESTClient().Get().AbsPath(root).URL().String(), http.NoBody)
	if err != nil {
		return "", fmt.Errorf("asking member %q for the version of its APIs: %w", m.Name, err)
	}
	request.Header.Set("Accept", discovery.AcceptV2)
	if known := m.apis.tags[root]; known != "" {
		request.Header.Set("If-None-Match", known)
	}
	response, err := m.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("asking member %q for the version of its APIs: %w", m.Name, err)
	}
	defer response.Body.Close()
	// An answer that is not wanted is read all the same, for the connection.
	_, _ = io.Copy(io.Discard, response.Body)
	switch response.StatusCode {
	case http.StatusNotModified:
		return m.apis.tags[root], nil
	case http.StatusOK:
		return response.Header.Get("ETag"), nil
	default:
		return "", nil
	}
}

func cloned(enablements []clusterv1alpha1.APIEnablement) []clusterv1alpha1.APIEnablement {
	copies := slices.Clone(enablements)
	for i := range copies {
		copies[i].Resources = slices.Clone(copies[i].Resources)
	}
	return copies
}
