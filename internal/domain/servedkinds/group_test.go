package servedkinds

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestServedVersions(t *testing.T) {
	kind := schema.GroupKind{Group: "example.org", Kind: "Widget"}
	v1, v2 := schema.GroupVersion{Group: "example.org", Version: "v1"}, schema.GroupVersion{Group: "example.org", Version: "v2"}
	groups := func(versions ...schema.GroupVersion) *metav1.APIGroupList {
		group := metav1.APIGroup{Name: "example.org"}
		for _, version := range versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: version.Version})
		}
		return &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}}, group}}
	}
	list := func(names ...string) *metav1.APIResourceList {
		found := &metav1.APIResourceList{}
		for _, name := range names {
			found.APIResources = append(found.APIResources, metav1.APIResource{Name: name, Kind: "Widget"})
		}
		return found
	}
	type lists = map[schema.GroupVersion]*metav1.APIResourceList
	type failures = map[schema.GroupVersion]error
	tests := map[string]struct {
		discovery Discovery
		versions  []string
		want      Availability
	}{
		"nothing was read":                            {Discovery{}, nil, Unknown},
		"an empty list of groups":                     {Discovery{Groups: &metav1.APIGroupList{}}, nil, Unknown},
		"another version serves the kind":             {Discovery{groups(v1, v2), lists{v1: list(), v2: list("widgets")}, nil}, []string{"v2"}, Served},
		"one version serves the kind, another failed": {Discovery{groups(v1, v2), lists{v2: list("widgets")}, failures{v1: errors.New("stale")}}, []string{"v2"}, Served},
		"no version serves the kind":                  {Discovery{groups(v1, v2), lists{v1: list(), v2: list()}, nil}, nil, NotServed},
		"only a subresource has the kind":             {Discovery{groups(v1), lists{v1: list("others/scale")}, nil}, nil, NotServed},
		"the group is not listed":                     {Discovery{Groups: groups()}, nil, NotServed},
		"one version could not be read":               {Discovery{groups(v1, v2), lists{v1: list()}, failures{v2: errors.New("stale")}}, nil, Unknown},
		"one version was not read":                    {Discovery{groups(v1, v2), lists{v1: list()}, nil}, nil, Unknown},
		"a version that is not listed failed":         {Discovery{groups(v1), lists{v1: list()}, failures{v2: errors.New("stale")}}, nil, Unknown},
		"a failed version of another group":           {Discovery{groups(v1), lists{v1: list()}, failures{{Group: "apps", Version: "v1"}: errors.New("stale")}}, nil, NotServed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			versions, got := test.discovery.ServedVersions(kind)
			if diff := cmp.Diff(test.versions, versions); diff != "" || got != test.want {
				t.Errorf("answer %d, want %d, versions (-want +got):\n%s", got, test.want, diff)
			}
		})
	}
}

func TestIsObjectNotFound(t *testing.T) {
	resource := schema.GroupResource{Group: "example.org", Resource: "widgets"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no error":                         {nil, false},
		"NotFound with the object name":    {apierrors.NewNotFound(resource, "web"), true},
		"wrapped":                          {fmt.Errorf("reading: %w", apierrors.NewNotFound(resource, "web")), true},
		"another object":                   {apierrors.NewNotFound(resource, "other"), false},
		"a path that the server lacks":     {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "web", "404 page not found", 0, true), false},
		"the user may not read the object": {apierrors.NewForbidden(resource, "web", errors.New("no")), false},
		"a server that does not answer":    {errors.New("EOF"), false},
		"NotFound without details":         {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsObjectNotFound(test.err, "web"); got != test.want {
				t.Errorf("IsObjectNotFound = %v", got)
			}
		})
	}
}
