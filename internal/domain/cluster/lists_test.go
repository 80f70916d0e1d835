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

// manyNames is a list of so many resources.
func manyNames(count int, prefix string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range count {
		list[corev1.ResourceName(fmt.Sprintf("%s%06d", prefix, i))] = resource.MustParse("1")
	}
	return list
}

func TestAListOfResourcesHasABound(t *testing.T) {
	for name, tc := range map[string]struct {
		list corev1.ResourceList
		want error
	}{
		"as many names as there may be": {manyNames(MaxResourceNames, "x"), nil},
		"one more":                      {manyNames(MaxResourceNames+1, "x"), ErrResourceNames},
		"so many that they would take hours to add up": {manyNames(380_000, "x"), ErrResourceNames},
		"the longest name": {resources(strings.Repeat("x", maxResourceName), "1"), nil},
		"a longer name":    {resources(strings.Repeat("x", maxResourceName+1), "1"), ErrResourceNames},
	} {
		t.Run(name, func(t *testing.T) {
			tally := NewTally()
			if _, err := tally.NodeLists.Intern(tc.list); !errors.Is(err, tc.want) {
				t.Errorf("err = %v, want %v", err, tc.want)
			}
			if held := tally.NodeLists.Held(); tc.want != nil && held != (Size{}) {
				t.Errorf("%+v is held of a refused list", held)
			}
		})
	}
}

func TestAListOfObjectsIsMeasuredByWhatItBrings(t *testing.T) {
	tally := NewTally()
	large := interned(&tally.PodLists, manyNames(200, "x"))
	tally.SetPod(id(1), "", large)
	tally.PodLists.Begin()
	small := interned(&tally.PodLists, resources("cpu", "1"))
	interned(&tally.PodLists, resources("cpu", "1"))
	if diff := cmp.Diff(Size{Bytes: len(small.text), Names: 1}, tally.PodLists.Listed()); diff != "" {
		t.Errorf("what the list brings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Size{Bytes: len(large.text) + len(small.text), Names: 201}, tally.PodLists.Held()); diff != "" {
		t.Errorf("what is held meanwhile (-want +got):\n%s", diff)
	}
	tally.PodLists.End()
	if diff := cmp.Diff(Size{Bytes: len(large.text), Names: 200}, tally.PodLists.Held()); diff != "" {
		t.Errorf("what is held after a list that failed (-want +got):\n%s", diff)
	}
	tally.PodLists.Begin()
	tally.SetPod(id(1), "", interned(&tally.PodLists, resources("cpu", "1")))
	tally.KeepPods(func(PodID) bool { return true })
	if diff := cmp.Diff(Size{Bytes: len(small.text), Names: 1}, tally.PodLists.Held()); diff != "" {
		t.Errorf("what is held after a list that succeeded (-want +got):\n%s", diff)
	}
	if held := tally.NodeLists.Held(); held != (Size{}) {
		t.Errorf("Pods take %+v from nodes", held)
	}
}
