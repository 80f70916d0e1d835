package loop

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRecordSuccess(t *testing.T) {
	counted := func(generation int64) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: generation}}
	}
	content := func(version string, fields map[string]any) client.Object {
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "2", "resourceVersion": version}}}
		for field, value := range fields {
			object.Object[field] = value
		}
		return object
	}
	blue, red := map[string]any{"data": map[string]any{"color": "blue"}}, map[string]any{"data": map[string]any{"color": "red"}}
	settled := map[string]any{"data": blue["data"], "status": map[string]any{"ready": true}}
	const reason = "SyncSucceed"
	succeed := func(objects ...client.Object) func(*Events) {
		return func(e *Events) {
			for i, object := range objects {
				e.RecordSuccess(object, reason, "success %d", i)
			}
		}
	}
	event := func(i int) string { return fmt.Sprintf("Normal %s success %d", reason, i) }
	tests := map[string]struct {
		mode EventMode
		do   func(*Events)
		want []string
	}{
		"no event in the mode changes":                   {EventModeChanges, succeed(counted(1), counted(2)), nil},
		"no event without a mode":                        {"", succeed(counted(1)), nil},
		"the first success of an object":                 {EventModeAll, succeed(counted(1), counted(1)), []string{event(0)}},
		"the first success of each generation":           {EventModeAll, succeed(counted(1), counted(2), counted(2)), []string{event(0), event(1)}},
		"each object separately":                         {EventModeAll, succeed(counted(1), content("1", blue)), []string{event(0), event(1)}},
		"an object without generation, content changed":  {EventModeAll, succeed(content("1", blue), content("2", red), content("3", red)), []string{event(0), event(1)}},
		"an object without generation, metadata changed": {EventModeAll, succeed(content("1", blue), content("2", blue)), []string{event(0)}},
		"an object without generation, status changed":   {EventModeAll, succeed(content("1", blue), content("2", settled)), []string{event(0)}},
		"a decision with the same reason counts": {EventModeAll, func(e *Events) {
			e.RecordDecision(counted(1), reason, "decided")
			e.RecordSuccess(counted(1), reason, "success 0")
			e.RecordDecision(counted(1), reason, "decided again")
		}, []string{"Normal SyncSucceed decided", "Normal SyncSucceed decided again"}},
		"a failure in between does not reset it": {EventModeAll, func(e *Events) {
			e.RecordSuccess(counted(1), reason, "success 0")
			e.RecordFailure(counted(1), "SyncFailed", errors.New("rejected"))
			e.RecordSuccess(counted(1), reason, "success 1")
		}, []string{event(0), "Warning SyncFailed rejected"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(10)
			tc.do(NewEvents(recorder).WithMode(tc.mode))
			if diff := cmp.Diff(tc.want, recordedEvents(recorder)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMode(t *testing.T) {
	for text, want := range map[string]EventMode{"changes": EventModeChanges, "all": EventModeAll, "": "", "All": "", "none": ""} {
		got, err := ParseEventMode(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}
