package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// newResourceList is a list with the given number of resources.
func newResourceList(count int, prefix string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range count {
		list[corev1.ResourceName(fmt.Sprintf("%s%06d", prefix, i))] = resource.MustParse("1")
	}
	return list
}

func TestResourceListBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		list corev1.ResourceList
		want error
	}{
		"the maximum number of names":               {newResourceList(MaxResourceNames, "x"), nil},
		"one name more than the maximum":            {newResourceList(MaxResourceNames+1, "x"), ErrResourceNames},
		"so many that adding them would take hours": {newResourceList(380_000, "x"), ErrResourceNames},
		"the longest name":                          {resources(strings.Repeat("x", maxResourceNameBytes), "1"), nil},
		"a longer name":                             {resources(strings.Repeat("x", maxResourceNameBytes+1), "1"), ErrResourceNames},
	} {
		t.Run(name, func(t *testing.T) {
			tally := NewTally()
			if _, err := tally.NodeLists.Intern(tc.list); !errors.Is(err, tc.want) {
				t.Errorf("err = %v, want %v", err, tc.want)
			}
			if held := tally.NodeLists.Held(); tc.want != nil && held != (Size{}) {
				t.Errorf("%+v of a rejected list is held", held)
			}
		})
	}
}

func TestListedSize(t *testing.T) {
	tally := NewTally()
	large := mustIntern(&tally.PodLists, newResourceList(200, "x"))
	tally.SetPod(podID(1), "", large)
	tally.PodLists.Begin()
	small := mustIntern(&tally.PodLists, resources("cpu", "1"))
	mustIntern(&tally.PodLists, resources("cpu", "1"))
	if diff := cmp.Diff(Size{Bytes: len(small.text), Names: 1}, tally.PodLists.Listed()); diff != "" {
		t.Errorf("size of the current list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Size{Bytes: len(large.text) + len(small.text), Names: 201}, tally.PodLists.Held()); diff != "" {
		t.Errorf("held size during the list (-want +got):\n%s", diff)
	}
	tally.PodLists.End()
	if diff := cmp.Diff(Size{Bytes: len(large.text), Names: 200}, tally.PodLists.Held()); diff != "" {
		t.Errorf("held size after a failed list (-want +got):\n%s", diff)
	}
	tally.PodLists.Begin()
	tally.SetPod(podID(1), "", mustIntern(&tally.PodLists, resources("cpu", "1")))
	tally.KeepPods(func(PodID) bool { return true })
	if diff := cmp.Diff(Size{Bytes: len(small.text), Names: 1}, tally.PodLists.Held()); diff != "" {
		t.Errorf("held size after a successful list (-want +got):\n%s", diff)
	}
	if held := tally.NodeLists.Held(); held != (Size{}) {
		t.Errorf("the pool of nodes holds %+v of Pods", held)
	}
}
