package served

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAKindIsAbsentOnlyIfAnAnswerShowsIt(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	all := metav1.Verbs{"get", "list", "watch"}
	listing := func(resources ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: resources}
	}
	groups := func(name string, versions ...string) *metav1.APIGroupList {
		group := metav1.APIGroup{Name: name}
		for _, version := range versions {
			group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{Version: version})
		}
		return &metav1.APIGroupList{Groups: []metav1.APIGroup{group}}
	}
	other := metav1.APIResource{Name: "gadgets", Kind: "Gadget", Verbs: all}
	tests := map[string]struct {
		groups    *metav1.APIGroupList
		resources *metav1.APIResourceList
		err       error
		want      Answer
	}{
		"listed": {resources: listing(other, metav1.APIResource{Name: "widgets", Kind: "Widget", Verbs: all}), want: Served},
		"not among the kinds of its group version":          {resources: listing(other), want: Absent},
		"listed without the verb watch":                     {resources: listing(metav1.APIResource{Name: "widgets", Kind: "Widget", Verbs: metav1.Verbs{"create", "list"}}), want: Absent},
		"only a subresource has its name":                   {resources: listing(metav1.APIResource{Name: "gadgets/widget", Kind: "Widget", Verbs: all}), want: Absent},
		"a group version without any kind says nothing":     {resources: listing(), want: Unknown},
		"no answer says nothing":                            {want: Unknown},
		"group version not found and not among the groups":  {groups: groups("apps", "v1"), err: notFound, want: Absent},
		"group version not found, but another version is":   {groups: groups("example.org", "v2"), err: notFound, want: Absent},
		"group version not found, but among the groups":     {groups: groups("example.org", "v1"), err: notFound, want: Unknown},
		"group version not found, groups could not be read": {err: notFound, want: Unknown},
		"group version not found, no group was listed":      {groups: &metav1.APIGroupList{}, err: notFound, want: Unknown},
		"the server behind it is unavailable":               {groups: groups("apps", "v1"), err: apierrors.NewServiceUnavailable("no endpoints"), want: Unknown},
		"forbidden":                                         {groups: groups("apps", "v1"), err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), want: Unknown},
		"the connection was closed":                         {groups: groups("apps", "v1"), err: errors.New("EOF"), want: Unknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Of(kind, tc.groups, tc.resources, tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAWatchRunsWhileItsKindIsServed(t *testing.T) {
	const patience = 5 * time.Second
	type heard struct {
		after  time.Duration
		answer Answer
	}
	tests := map[string]struct {
		heard []heard
		want  []Step
	}{
		"a kind that is served":                     {[]heard{{0, Served}, {time.Minute, Served}}, []Step{Keep, Keep}},
		"one answer that it is absent":              {[]heard{{0, Absent}}, []Step{Keep}},
		"absent, but not long enough":               {[]heard{{0, Absent}, {patience - 1, Absent}}, []Step{Keep, Keep}},
		"absent for long enough":                    {[]heard{{0, Absent}, {patience, Absent}}, []Step{Keep, End}},
		"unknown for ever":                          {[]heard{{0, Unknown}, {time.Hour, Unknown}}, []Step{Keep, Keep}},
		"absent, then unknown":                      {[]heard{{0, Absent}, {time.Hour, Unknown}}, []Step{Keep, Keep}},
		"absent before and after an unknown":        {[]heard{{0, Absent}, {time.Second, Unknown}, {patience, Absent}}, []Step{Keep, Keep, End}},
		"served meanwhile":                          {[]heard{{0, Absent}, {time.Second, Served}, {patience, Absent}}, []Step{Keep, Keep, Keep}},
		"ended, then absent further":                {[]heard{{0, Absent}, {patience, Absent}, {time.Hour, Absent}}, []Step{Keep, End, Keep}},
		"ended, then unknown":                       {[]heard{{0, Absent}, {patience, Absent}, {time.Hour, Unknown}}, []Step{Keep, End, Keep}},
		"ended, then served again":                  {[]heard{{0, Absent}, {patience, Absent}, {time.Hour, Served}}, []Step{Keep, End, Begin}},
		"it waits again after it was served again":  {[]heard{{0, Absent}, {patience, Absent}, {patience, Served}, {patience, Absent}}, []Step{Keep, End, Begin, Keep}},
		"ended a second time after a second period": {[]heard{{0, Absent}, {patience, Absent}, {patience, Served}, {patience, Absent}, {2 * patience, Absent}}, []Step{Keep, End, Begin, Keep, End}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			watch, start := Watch{}, time.Unix(0, 0)
			var got []Step
			for _, h := range tc.heard {
				var step Step
				watch, step = watch.Next(h.answer, start.Add(h.after), patience)
				got = append(got, step)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
