package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karmada.io/karmada/internal/domain/nodecapacity"
)

// newResourceList returns a list with the given number of resources.
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
		"one name more than the maximum":            {newResourceList(MaxResourceNames+1, "x"), ErrTooManyResourceNames},
		"so many that adding them would take hours": {newResourceList(380_000, "x"), ErrTooManyResourceNames},
		"the longest name":                          {resources(strings.Repeat("x", maxResourceNameBytes), "1"), nil},
		"a longer name":                             {resources(strings.Repeat("x", maxResourceNameBytes+1), "1"), ErrTooManyResourceNames},
	} {
		t.Run(name, func(t *testing.T) {
			tally := NewUsageCounter()
			if _, err := tally.NodeLists.Intern(tc.list); !errors.Is(err, tc.want) {
				t.Errorf("err = %v, want %v", err, tc.want)
			}
			if held := tally.NodeLists.HeldSize(); tc.want != nil && held != (PoolSize{}) {
				t.Errorf("%+v of a rejected list is held", held)
			}
		})
	}
}

func TestListedSize(t *testing.T) {
	tally := NewUsageCounter()
	large := mustIntern(&tally.PodLists, newResourceList(200, "x"))
	tally.SetPod(podID(1), "", large)
	tally.PodLists.BeginList()
	small := mustIntern(&tally.PodLists, resources("cpu", "1"))
	mustIntern(&tally.PodLists, resources("cpu", "1"))
	if diff := cmp.Diff(PoolSize{Bytes: len(small.text), Names: 1}, tally.PodLists.ListedSize()); diff != "" {
		t.Errorf("size of the current list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(PoolSize{Bytes: len(large.text) + len(small.text), Names: 201}, tally.PodLists.HeldSize()); diff != "" {
		t.Errorf("held size during the list (-want +got):\n%s", diff)
	}
	tally.PodLists.EndList()
	if diff := cmp.Diff(PoolSize{Bytes: len(large.text), Names: 200}, tally.PodLists.HeldSize()); diff != "" {
		t.Errorf("held size after a failed list (-want +got):\n%s", diff)
	}
	tally.PodLists.BeginList()
	tally.SetPod(podID(1), "", mustIntern(&tally.PodLists, resources("cpu", "1")))
	tally.PrunePods(func(nodecapacity.PodID) bool { return true })
	if diff := cmp.Diff(PoolSize{Bytes: len(small.text), Names: 1}, tally.PodLists.HeldSize()); diff != "" {
		t.Errorf("held size after a successful list (-want +got):\n%s", diff)
	}
	if held := tally.NodeLists.HeldSize(); held != (PoolSize{}) {
		t.Errorf("the pool of nodes holds %+v of Pods", held)
	}
}
