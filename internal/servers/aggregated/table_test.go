package aggregated

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestFormatTaints(t *testing.T) {
	tests := map[string]struct {
		taints []corev1.Taint
		want   string
	}{
		"none": {want: "<none>"},
		"a taint with a value and a taint without": {
			taints: []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoExecute}, {Key: "cordon", Effect: corev1.TaintEffectNoSchedule}},
			want:   "cordon:NoSchedule,dedicated=gpu:NoExecute",
		},
		"both effects of a key": {
			taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "a", Effect: corev1.TaintEffectNoExecute}},
			want:   "a:NoExecute,a:NoSchedule",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := orNone(formatTaints(test.taints)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
