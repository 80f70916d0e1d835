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
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// catalogue is an API server that describes its APIs under a tag.
type catalogue struct {
	*httptest.Server
	tag       string
	freshness apidiscoveryv2.DiscoveryFreshness
	kinds     []string
	// given is how often the whole description was given.
	given int
}

func newCatalogue(t *testing.T, tag string) *catalogue {
	t.Helper()
	c := &catalogue{tag: tag, freshness: apidiscoveryv2.DiscoveryFreshnessCurrent, kinds: []string{"Deployment"}}
	mux := http.NewServeMux()
	core := apidiscoveryv2.APIGroupDiscovery{Versions: []apidiscoveryv2.APIVersionDiscovery{{Version: "v1", Freshness: c.freshness}}}
	mux.HandleFunc("/api", c.describe(func() []apidiscoveryv2.APIGroupDiscovery { return []apidiscoveryv2.APIGroupDiscovery{core} }))
	mux.HandleFunc("/apis", c.describe(func() []apidiscoveryv2.APIGroupDiscovery { return []apidiscoveryv2.APIGroupDiscovery{c.apps()} }))
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

func (c *catalogue) apps() apidiscoveryv2.APIGroupDiscovery {
	version := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: c.freshness}
	for _, kind := range c.kinds {
		version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: kind + "s", ResponseKind: &metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}, Scope: apidiscoveryv2.ScopeNamespace,
		})
	}
	return apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: "apps"}, Versions: []apidiscoveryv2.APIVersionDiscovery{version}}
}

func (c *catalogue) describe(groups func() []apidiscoveryv2.APIGroupDiscovery) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if c.tag != "" {
			w.Header().Set("ETag", c.tag)
			if r.Header.Get("If-None-Match") == c.tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		if r.URL.Path == "/apis" {
			c.given++
		}
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		list := apidiscoveryv2.APIGroupDiscoveryList{Items: groups()}
		list.APIVersion, list.Kind = "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList"
		_ = json.NewEncoder(w).Encode(list)
	}
}

func TestAPIsAreReadAgainOnlyWhenTheyChanged(t *testing.T) {
	c := newCatalogue(t, "one")
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
	before := c.given
	ask(true, "Deployment")
	ask(true, "Deployment")
	if c.given != before {
		t.Errorf("what did not change was read %d times more", c.given-before)
	}
	c.tag, c.kinds = "two", []string{"Deployment", "StatefulSet"}
	ask(true, "Deployment", "StatefulSet")
	c.tag, c.freshness = "three", apidiscoveryv2.DiscoveryFreshnessStale
	ask(false)
	c.freshness = apidiscoveryv2.DiscoveryFreshnessCurrent
	ask(true, "Deployment", "StatefulSet")
}

func TestAServerWithoutTagsIsReadEachTime(t *testing.T) {
	c := newCatalogue(t, "")
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

// openAt opens the member at an address.
func openAt(t testing.TB, url string) *Member {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	alive := &liveness{lost: func(string) {}, recovered: func(string) {}}
	m, err := open(ctx, "m1", &rest.Config{Host: url, QPS: -1}, nil, alive, &credentials{}, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.close(); cancel() })
	return m
}
