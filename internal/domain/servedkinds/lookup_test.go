package servedkinds

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fakeServer returns the same response to each request.
type fakeServer struct {
	err, groupsErr error
	groups         *metav1.APIGroupList
	failed         map[schema.GroupVersion]error
}

func (f fakeServer) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if f.err != nil {
		return nil, f.err
	}
	return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{
		{Name: "widgets", Kind: "Widget", Verbs: metav1.Verbs{"list", "watch"}},
	}}, nil
}

func (f fakeServer) GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	return f.groups, nil, f.failed, f.groupsErr
}

func TestLookup(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	others := &metav1.APIGroupList{Groups: []metav1.APIGroup{{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}}}}
	tests := map[string]struct {
		server fakeServer
		want   Availability
		failed bool
	}{
		"the kind is listed":                   {fakeServer{}, Served, false},
		"its group is not listed":              {fakeServer{err: notFound, groups: others}, NotServed, false},
		"the groups cannot be listed":          {fakeServer{err: notFound, groups: others, groupsErr: errors.New("EOF")}, Unknown, true},
		"its group version is unavailable":     {fakeServer{err: notFound, groups: others, failed: map[schema.GroupVersion]error{kind.GroupVersion(): errors.New("stale")}}, Unknown, true},
		"another group version is unavailable": {fakeServer{err: notFound, groups: others, failed: map[schema.GroupVersion]error{{Group: "other", Version: "v1"}: errors.New("stale")}}, NotServed, false},
		"the server does not answer":           {fakeServer{err: errors.New("EOF")}, Unknown, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Lookup(tc.server, kind); got != tc.want || (err != nil) != tc.failed {
				t.Errorf("got %d, %v, want %d, an error: %t", got, err, tc.want, tc.failed)
			}
		})
	}
}
