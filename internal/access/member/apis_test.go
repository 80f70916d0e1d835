package member

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/watches"
)

// discoveryServer is an API server that returns its APIs with an ETag.
type discoveryServer struct {
	*httptest.Server
	etag      string
	freshness apidiscoveryv2.DiscoveryFreshness
	kinds     []string
	// fullReads is the number of reads of all APIs.
	fullReads int
}

func newDiscoveryServer(t *testing.T, tag string) *discoveryServer {
	t.Helper()
	c := &discoveryServer{etag: tag, freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, kinds: []string{"Deployment"}}
	mux := http.NewServeMux()
	core := apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Freshness: c.freshness}}}
	mux.HandleFunc("/api", c.serveGroups(func() []apidiscoveryv2.APIGroupDiscovery { return []apidiscoveryv2.APIGroupDiscovery{core} }))
	mux.HandleFunc("/apis", c.serveGroups(func() []apidiscoveryv2.APIGroupDiscovery { return []apidiscoveryv2.APIGroupDiscovery{c.appsGroup()} }))
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func (d *discoveryServer) appsGroup() apidiscoveryv2.APIGroupDiscovery {
	version := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: d.freshness}
	for _, kind := range d.kinds {
		version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: kind + "s", ResponseKind: &metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, Scope: apidiscoveryv2.ScopeNamespace,
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Versions: []apidiscoveryv2.APIVersionDiscovery{version}}
}

func (d *discoveryServer) serveGroups(groups func() []apidiscoveryv2.APIGroupDiscovery) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if d.etag != "" {
			w.Header().Set("ETag", d.etag)
			if r.Header.Get("If-None-Match") == d.etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		if r.URL.Path == "/apis" {
			d.fullReads++
		}
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		list := apidiscoveryv2.APIGroupDiscoveryList{Items: groups()}
		list.APIVersion, list.Kind = "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"
		_ = json.NewEncoder(w).Encode(list)
	}
}

func TestAPIsAreReadAgainOnChange(t *testing.T) {
	c := newDiscoveryServer(t, "one")
	m := openAt(t, c.URL)
	ask := func(complete bool, kinds ...string) {
		t.Helper()
		got, whole, err := m.APIs(t.Context())
		if whole != complete || (err == nil) != complete {
			t.Errorf("complete: %t, %v", whole, err)
		}
		want := []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}
		if len(kinds) > 0 {
			want = []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1"}, {GroupVersion: "v1"}}
		}
		for _, kind := range kinds {
			want[0].Resources = append(want[0].Resources, clusterv1alpha1.APIResource{Name: kind + "s", Kind: kind})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("APIs (-want +got):\n%s", diff)
		}
	}
	ask(true, "Deployment")
	before := c.fullReads
	ask(true, "Deployment")
	ask(true, "Deployment")
	if c.fullReads != before {
		t.Errorf("unchanged APIs were read %d more times", c.fullReads-before)
	}
	c.etag, c.kinds = "two", []string{"Deployment", "StatefulSet"}
	ask(true, "Deployment", "StatefulSet")
	c.etag, c.freshness = "three", apidiscoveryv2.DiscoveryFreshnessStale
	ask(false)
	c.freshness = apidiscoveryv2.DiscoveryFreshnessCurrent
	ask(true, "Deployment", "StatefulSet")
}

func TestAPIsWithoutETagAreReadEachTime(t *testing.T) {
	c := newDiscoveryServer(t, "")
	m := openAt(t, c.URL)
	for range 2 {
		if got, _, err := m.APIs(t.Context()); err != nil || len(got) != 2 {
			t.Fatalf("%v, %v", got, err)
		}
		c.kinds = append(c.kinds, "StatefulSet")
	}
	if got, _, _ := m.APIs(t.Context()); len(got[0].Resources) != 3 {
		t.Errorf("%v", got)
	}
}

// openAt opens the member at the given address.
func openAt(t testing.TB, url string) *Member {
	t.Helper()
	return openWith(t, "m1", &rest.Config{Host: url, QPS: -1}, &managedWatches{})
}

// openWith opens a member for the time of a test.
func openWith(t testing.TB, name string, config *rest.Config, managed *managedWatches) *Member {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	health := &healthTracker{onUnhealthy: func(string) {}, onRecovered: func(string) {}}
	managed.member, managed.manager, managed.subscriptions = name, watches.NewManager(ctx), map[schema.GroupVersionKind]*watches.Subscription{}
	if managed.notify == nil {
		managed.notify = func(Event) {}
	}
	m, err := openMember(ctx, name, config, nil, health, &credentials{}, managed)
	if err != nil {
		t.Fatal(err)
	}
	server, err := m.watchServer()
	if err != nil {
		t.Fatal(err)
	}
	managed.manager.Connect(name, server)
	t.Cleanup(func() {
		managed.close()
		managed.manager.Disconnect(name)
		m.close()
		cancel()
	})
	return m
}
