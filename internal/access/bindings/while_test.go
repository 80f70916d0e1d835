package bindings

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"karmada.io/karmada/internal/domain/binding"
)

func TestWhile(t *testing.T) {
	leaving := made(true, "web")
	stays := made(true, "web", func(bound binding.Object) { bound.BindingSpec().GracefulEvictionTasks = nil })
	passes := While(func(bound binding.Object) bool { return len(bound.BindingSpec().GracefulEvictionTasks) > 0 })
	tests := map[string]struct {
		before, after client.Object
		want          bool
	}{
		"one of which it holds":            {leaving, leaving, true},
		"one of which it begins to hold":   {stays, leaving, true},
		"one of which it ceases to hold":   {leaving, stays, true},
		"one of which it never held":       {stays, stays, false},
		"what is no binding":               {&corev1.Pod{}, &corev1.Pod{}, false},
		"one that is new":                  {nil, leaving, true},
		"a new one of which it never held": {nil, stays, false},
		"one that is gone":                 {leaving, nil, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got bool
			switch {
			case test.before == nil:
				got = passes.Create(event.CreateEvent{Object: test.after})
			case test.after == nil:
				got = passes.Delete(event.DeleteEvent{Object: test.before})
			default:
				got = passes.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after})
			}
			if got != test.want {
				t.Errorf("passes: %t", got)
			}
		})
	}
}
