package servedkinds

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestKindAvailability(t *testing.T) {
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
		want      Availability
	}{
		"listed": {resources: listing(other, metav1.APIResource{Name: "widgets", Kind: "Widget", Verbs: all}), want: Served},
		"not among the kinds of its group version":          {resources: listing(other), want: NotServed},
		"listed without the verb watch":                     {resources: listing(metav1.APIResource{Name: "widgets", Kind: "Widget", Verbs: metav1.Verbs{"create", "list"}}), want: NotServed},
		"only a subresource has its name":                   {resources: listing(metav1.APIResource{Name: "gadgets/widget", Kind: "Widget", Verbs: all}), want: NotServed},
		"a group version without any kind":                  {resources: listing(), want: Unknown},
		"no response":                                       {want: Unknown},
		"group version not found and not among the groups":  {groups: groups("apps", "v1"), err: notFound, want: NotServed},
		"group version not found, but another version is":   {groups: groups("example.org", "v2"), err: notFound, want: NotServed},
		"group version not found, but among the groups":     {groups: groups("example.org", "v1"), err: notFound, want: Unknown},
		"group version not found, groups could not be read": {err: notFound, want: Unknown},
		"group version not found, no group was listed":      {groups: &metav1.APIGroupList{}, err: notFound, want: Unknown},
		"the server behind it is unavailable":               {groups: groups("apps", "v1"), err: apierrors.NewServiceUnavailable("no endpoints"), want: Unknown},
		"forbidden":                                         {groups: groups("apps", "v1"), err: apierrors.NewForbidden(schema.GroupResource{}, "", nil), want: Unknown},
		"the connection was closed":                         {groups: groups("apps", "v1"), err: errors.New("EOF"), want: Unknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := KindAvailability(kind, tc.groups, tc.resources, tc.err); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWatchStateNext(t *testing.T) {
	const delay = 5 * time.Second
	type result struct {
		after  time.Duration
		answer Availability
	}
	tests := map[string]struct {
		results []result
		want    []WatchAction
	}{
		"a kind that is served":                      {[]result{{0, Served}, {time.Minute, Served}}, []WatchAction{KeepWatch, KeepWatch}},
		"one absent result":                          {[]result{{0, NotServed}}, []WatchAction{KeepWatch}},
		"absent, but not long enough":                {[]result{{0, NotServed}, {delay - 1, NotServed}}, []WatchAction{KeepWatch, KeepWatch}},
		"absent for long enough":                     {[]result{{0, NotServed}, {delay, NotServed}}, []WatchAction{KeepWatch, StopWatch}},
		"unknown for ever":                           {[]result{{0, Unknown}, {time.Hour, Unknown}}, []WatchAction{KeepWatch, KeepWatch}},
		"absent, then unknown":                       {[]result{{0, NotServed}, {time.Hour, Unknown}}, []WatchAction{KeepWatch, KeepWatch}},
		"absent before and after an unknown":         {[]result{{0, NotServed}, {time.Second, Unknown}, {delay, NotServed}}, []WatchAction{KeepWatch, KeepWatch, StopWatch}},
		"served meanwhile":                           {[]result{{0, NotServed}, {time.Second, Served}, {delay, NotServed}}, []WatchAction{KeepWatch, KeepWatch, KeepWatch}},
		"ended, then absent further":                 {[]result{{0, NotServed}, {delay, NotServed}, {time.Hour, NotServed}}, []WatchAction{KeepWatch, StopWatch, KeepWatch}},
		"ended, then unknown":                        {[]result{{0, NotServed}, {delay, NotServed}, {time.Hour, Unknown}}, []WatchAction{KeepWatch, StopWatch, KeepWatch}},
		"ended, then served again":                   {[]result{{0, NotServed}, {delay, NotServed}, {time.Hour, Served}}, []WatchAction{KeepWatch, StopWatch, StartWatch}},
		"the delay starts again after it was served": {[]result{{0, NotServed}, {delay, NotServed}, {delay, Served}, {delay, NotServed}}, []WatchAction{KeepWatch, StopWatch, StartWatch, KeepWatch}},
		"ended a second time after a second period":  {[]result{{0, NotServed}, {delay, NotServed}, {delay, Served}, {delay, NotServed}, {2 * delay, NotServed}}, []WatchAction{KeepWatch, StopWatch, StartWatch, KeepWatch, StopWatch}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			watch, start := WatchState{}, time.Unix(0, 0)
			var got []WatchAction
			for _, h := range tc.results {
				var step WatchAction
				watch, step = watch.Next(h.answer, start.Add(h.after), delay)
				got = append(got, step)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}
