package lookup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"karmada.io/karmada/internal/domain/binding"
)

func TestOldOrNewMatches(t *testing.T) {
	leaving := newBinding(true, "web")
	stays := newBinding(true, "web", func(bound binding.Object) { bound.BindingSpec().GracefulEvictionTasks = nil })
	passes := OldOrNewMatches(func(bound binding.Object) bool { return len(bound.BindingSpec().GracefulEvictionTasks) > 0 })
	tests := map[string]struct {
		before, after client.Object
		want          bool
	}{
		"matches before and after":          {leaving, leaving, true},
		"matches after":                     {stays, leaving, true},
		"matches before":                    {leaving, stays, true},
		"matches never":                     {stays, stays, false},
		"not a binding":                     {&corev1.Pod{}, &corev1.Pod{}, false},
		"a new binding that matches":        {nil, leaving, true},
		"a new binding that does not match": {nil, stays, false},
		"a deleted binding that matched":    {leaving, nil, true},
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
