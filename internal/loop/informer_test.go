package loop

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

func namedPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestHandlers(t *testing.T) {
	pod, other, secret := namedPod("a"), namedPod("b"), &corev1.Secret{}
	tests := map[string]struct {
		send func(toolscache.ResourceEventHandler)
		want []string
	}{
		"a new object":                           {func(h toolscache.ResourceEventHandler) { h.OnAdd(pod, false) }, []string{"added a"}},
		"an object of the initial list":          {func(h toolscache.ResourceEventHandler) { h.OnAdd(pod, true) }, []string{"listed a"}},
		"an update":                              {func(h toolscache.ResourceEventHandler) { h.OnUpdate(pod, other) }, []string{"updated a to b"}},
		"a deleted object":                       {func(h toolscache.ResourceEventHandler) { h.OnDelete(pod) }, []string{"deleted a"}},
		"a tombstone":                            {func(h toolscache.ResourceEventHandler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: pod}) }, []string{"deleted a"}},
		"a new object of another type":           {func(h toolscache.ResourceEventHandler) { h.OnAdd(secret, false) }, nil},
		"an update from another type":            {func(h toolscache.ResourceEventHandler) { h.OnUpdate(secret, pod) }, nil},
		"an update to another type":              {func(h toolscache.ResourceEventHandler) { h.OnUpdate(pod, secret) }, nil},
		"a tombstone of another type":            {func(h toolscache.ResourceEventHandler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: secret}) }, nil},
		"a tombstone without an object is empty": {func(h toolscache.ResourceEventHandler) { h.OnDelete(toolscache.DeletedFinalStateUnknown{}) }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			test.send(Handlers[*corev1.Pod]{
				Added: func(object *corev1.Pod, isInInitialList bool) {
					word := "added "
					if isInInitialList {
						word = "listed "
					}
					got = append(got, word+object.Name)
				},
				Updated: func(before, after *corev1.Pod) { got = append(got, "updated "+before.Name+" to "+after.Name) },
				Deleted: func(lastKnown *corev1.Pod) { got = append(got, "deleted "+lastKnown.Name) },
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("handled (-want +got):\n%s", diff)
			}
			test.send(Handlers[*corev1.Pod]{}) // must not panic
		})
	}
}
