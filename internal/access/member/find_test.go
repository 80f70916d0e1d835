package member

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/member/bounds"
)

// widgetServer is an API server that stores one Widget. It serves the Widget in some versions or in
// none.
type widgetServer struct {
	*httptest.Server

	mu sync.Mutex
	// versions are the served versions of the group example.org. widgets are the versions that
	// contain the kind Widget.
	versions, widgets []string
	// definitions are the kinds of CustomResourceDefinitions, by name.
	definitions map[string]string
	// areCRDsForbidden makes the CustomResourceDefinitions unreadable. isWidgetPathMissing makes
	// the server return 404 at the path of the Widget although it serves the kind.
	areCRDsForbidden, isWidgetPathMissing bool
	// isHanging makes the server never respond to the discovery of a group version.
	isHanging bool
}

func newWidgetServer(t *testing.T) *widgetServer {
	s := &widgetServer{versions: []string{"v1"}, widgets: []string{"v1"}, definitions: map[string]string{"widgets.example.org": "Widget"}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func (s *widgetServer) update(change func(*widgetServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

func (s *widgetServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/example.org/"), "/")
	switch {
	case r.URL.Path == "/api":
		writeJSON(w, http.StatusOK, metav1.APIVersions{})
	case r.URL.Path == "/apis":
		writeJSON(w, http.StatusOK, metav1.APIGroupList{Groups: s.groups()})
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1":
		writeJSON(w, http.StatusOK, metav1.APIResourceList{GroupVersion: "apiextensions.k8s.io/v1", APIResources: []metav1.APIResource{
			{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition", Verbs: metav1.Verbs{"get", "list", "watch"}},
		}})
	case strings.HasPrefix(r.URL.Path, definitionsPath):
		s.serveDefinitions(w, strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, definitionsPath), "/"))
	case !strings.HasPrefix(r.URL.Path, "/apis/example.org/"), !slices.Contains(s.versions, version):
		http.NotFound(w, r)
	case path == "" && s.isHanging:
		s.mu.Unlock()
		<-r.Context().Done()
		s.mu.Lock()
	case path == "":
		writeJSON(w, http.StatusOK, s.kinds(version))
	case !slices.Contains(s.widgets, version) || s.isWidgetPathMissing:
		http.NotFound(w, r)
	case path == "namespaces/a/widgets/one":
		writeJSON(w, http.StatusOK, map[string]any{"apiVersion": "example.org/" + version, "kind": "Widget", "metadata": map[string]any{"namespace": "a", "name": "one"}})
	default:
		writeJSON(w, http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, path[strings.LastIndex(path, "/")+1:]).Status())
	}
}

func (s *widgetServer) groups() []metav1.APIGroup {
	groups := []metav1.APIGroup{{Name: "apiextensions.k8s.io", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "apiextensions.k8s.io/v1", Version: "v1"}}}}
	group := metav1.APIGroup{Name: "example.org"}
	for _, version := range s.versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: "example.org/" + version, Version: version})
	}
	if len(s.versions) > 0 {
		groups = append(groups, group)
	}
	return groups
}

func (s *widgetServer) kinds(version string) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: "example.org/" + version, APIResources: []metav1.APIResource{
		{Name: "others", Kind: "Other", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}},
	}}
	if slices.Contains(s.widgets, version) {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch"}})
	}
	return list
}

func (s *widgetServer) serveDefinitions(w http.ResponseWriter, name string) {
	resource := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	switch {
	case s.areCRDsForbidden:
		writeJSON(w, http.StatusForbidden, apierrors.NewForbidden(resource, name, errors.New("no")).Status())
	case name == "":
		list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
		for name := range s.definitions {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		writeJSON(w, http.StatusOK, list)
	case s.definitions[name] == "":
		writeJSON(w, http.StatusNotFound, apierrors.NewNotFound(resource, name).Status())
	default:
		writeJSON(w, http.StatusOK, map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"group": "example.org", "names": map[string]any{"kind": s.definitions[name]}},
		})
	}
}

var widgetKey = client.ObjectKey{Namespace: "a", Name: "one"}

func TestFindNeedsProofOfAbsence(t *testing.T) {
	unserved := func(s *widgetServer) { s.versions, s.widgets = nil, nil }
	for name, tc := range map[string]struct {
		change func(*widgetServer)
		kind   schema.GroupVersionKind
		// want is the version in which the object is found. cause is a part of the message of the
		// KindUnservedError.
		want, cause string
	}{
		"the version is served": {func(*widgetServer) {}, widgetKind, "example.org/v1", ""},
		"another version is served": {func(s *widgetServer) {
			s.versions, s.widgets = []string{"v2"}, []string{"v2"}
		}, widgetKind, "example.org/v2", ""},
		"another version is served, and the requested version has other kinds": {func(s *widgetServer) {
			s.versions, s.widgets = []string{"v1", "v2"}, []string{"v2"}
		}, widgetKind, "example.org/v2", ""},
		"the definition was deleted": {func(s *widgetServer) {
			unserved(s)
			s.definitions = nil
		}, widgetKind, "", ""},
		"the definition was deleted, another definition of the group exists": {func(s *widgetServer) {
			s.widgets, s.definitions = nil, map[string]string{"others.example.org": "Other"}
		}, widgetKind, "", ""},
		"the definition serves no version": {unserved, widgetKind, "", "CustomResourceDefinition widgets.example.org keeps its objects"},
		"the definitions cannot be read": {func(s *widgetServer) {
			unserved(s)
			s.definitions, s.areCRDsForbidden = nil, true
		}, widgetKind, "", "listing its CustomResourceDefinitions: "},
		"a built-in kind":                       {func(*widgetServer) {}, schema.GroupVersionKind{Group: "policy", Version: "v1beta1", Kind: "PodSecurityPolicy"}, "", "is a kind of Kubernetes"},
		"a built-in kind whose group has a dot": {func(*widgetServer) {}, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, "", "is a kind of Kubernetes"},
	} {
		t.Run(name, func(t *testing.T) {
			server := newWidgetServer(t)
			m := openObservedMember(t, server.URL)
			// The mapper caches version v1 from now on.
			if _, err := m.FindInAnyVersion(t.Context(), widgetKind, widgetKey); err != nil {
				t.Fatal(err)
			}
			server.update(tc.change)
			for range 2 {
				object, err := m.FindInAnyVersion(t.Context(), tc.kind, widgetKey)
				unserved := new(KindUnservedError)
				if errors.As(err, &unserved) != (tc.cause != "") || err != nil && !strings.Contains(err.Error(), tc.cause) || tc.cause == "" && err != nil {
					t.Fatalf("err = %v, want %q", err, tc.cause)
				}
				if got := apiVersionOf(object); got != tc.want {
					t.Errorf("found version %q, want %q", got, tc.want)
				}
			}
			if hits := m.ExceededBounds(); len(hits) > 0 {
				t.Errorf("an honest member exceeded bounds: %v", hits)
			}
		})
	}
}

func apiVersionOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return object.GetAPIVersion()
}

func Test404OfUnservedKindIsNoMatch(t *testing.T) {
	server := newWidgetServer(t)
	m := openObservedMember(t, server.URL)
	object, err := m.GetLive(t.Context(), widgetKind, widgetKey)
	if err != nil {
		t.Fatal(err)
	}
	server.update(func(s *widgetServer) { s.versions, s.widgets = []string{"v2"}, []string{"v2"} })
	if err := m.Client().Delete(t.Context(), object.DeepCopy()); !meta.IsNoMatchError(err) || !IsKindUnserved(err) || apierrors.IsNotFound(err) {
		t.Errorf("the version is not served: %v", err)
	}
	server.update(func(s *widgetServer) { s.isHanging = true })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Client().Delete(ctx, object.DeepCopy()); apierrors.IsNotFound(err) {
		t.Errorf("discovery does not answer: %v", err)
	}
	if hits := m.ExceededBounds(); len(hits) > 0 {
		t.Errorf("an honest member exceeded bounds: %v", hits)
	}

	// If discovery shows that the kind is served, a 404 for the path of the kind contradicts
	// discovery.
	server.update(func(s *widgetServer) {
		s.versions, s.widgets, s.isWidgetPathMissing, s.isHanging = []string{"v1"}, []string{"v1"}, true, false
	})
	err = m.Client().Delete(t.Context(), object.DeepCopy())
	if exceeded := new(bounds.ExceededError); !errors.As(err, &exceeded) || exceeded.Bound != bounds.ObjectIdentity || IsKindUnserved(err) {
		t.Errorf("a kind that is served: %v", err)
	}
}

func TestFindSharesOneRequestTimeout(t *testing.T) {
	for name, tc := range map[string]struct {
		versions int
		bound    bounds.Bound
	}{
		"more versions than the bound": {40_000, bounds.GroupVersions},
		"versions that do not answer":  {1_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := newWidgetServer(t)
			server.update(func(s *widgetServer) {
				s.versions, s.widgets, s.isHanging = nil, nil, true
				for i := range tc.versions {
					s.versions = append(s.versions, fmt.Sprintf("v%d", i+10))
				}
			})
			m := openObservedMember(t, server.URL)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			start := time.Now()
			_, err := m.FindInAnyVersion(ctx, widgetKind, widgetKey)
			if unserved := new(KindUnservedError); !errors.As(err, &unserved) {
				t.Errorf("err = %v", err)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if exceeded := new(bounds.ExceededError); errors.As(err, &exceeded) != (tc.bound != "") || tc.bound != "" && exceeded.Bound != tc.bound {
				t.Errorf("err = %v, want the bound %q", err, tc.bound)
			}
		})
	}
}
