package loop

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// TestPutBackAfterFailedWrite puts back changes of the parts a and b of the Work with UID 1.
// They were submitted at noon and set the text "old".
func TestPutBackAfterFailedWrite(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	key := types.NamespacedName{Namespace: "karmada-es-m1", Name: "web"}
	tests := map[string]struct {
		since map[StatusPart]string
		uid   types.UID
		// want contains the texts of the changes that are pending after the call. first is the time
		// of the first of these changes.
		want  map[StatusPart]string
		first time.Time
	}{
		"no newer change":                      {want: map[StatusPart]string{"a": "old", "b": "old"}, first: noon},
		"a newer change of a part wins":        {since: map[StatusPart]string{"a": "new", "c": "new"}, uid: "1", want: map[StatusPart]string{"a": "new", "b": "old", "c": "new"}, first: noon},
		"changes of a former Work are dropped": {since: map[StatusPart]string{"a": "new"}, uid: "2", want: map[StatusPart]string{"a": "new"}, first: noon.Add(time.Minute)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := NewStatusWriter(nil, nil, DefaultStatusWriterOptions())
			defer w.queue.ShutDown()
			now := noon
			w.now = func() time.Time { return now }
			texts := map[StatusPart]string{}
			hand := func(uid types.UID, part StatusPart, text string) {
				work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: uid}}
				w.Submit(work, part, StatusFailed, func(*workv1alpha1.WorkStatus) { texts[part] = text })
			}
			hand("1", "a", "old")
			hand("1", "b", "old")
			entry, _ := w.takePending(key)
			now = noon.Add(time.Minute)
			for part, text := range test.since {
				hand(test.uid, part, text)
			}
			w.putBack(key, entry)
			kept := w.pending[key]
			for _, each := range kept.changes {
				each.change(nil)
			}
			if diff := cmp.Diff(test.want, texts); diff != "" || !kept.firstAt.Equal(test.first) {
				t.Errorf("waiting since %s, texts (-want +got):\n%s", kept.firstAt, diff)
			}
		})
	}
}

func TestPendingUpdateOfFormerWorkIsDropped(t *testing.T) {
	w := NewStatusWriter(nil, nil, DefaultStatusWriterOptions())
	defer w.queue.ShutDown()
	w.Submit(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}, "a", StatusInProgress, nil)
	w.Submit(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "2"}}, "b", StatusInProgress, nil)
	kept := w.pending[types.NamespacedName{Namespace: "ns", Name: "web"}]
	if _, stale := kept.changes["a"]; kept.uid != "2" || stale || len(kept.changes) != 1 {
		t.Errorf("pending for %s: %v", kept.uid, kept.changes)
	}
}
