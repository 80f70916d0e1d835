package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestCordonTaints(t *testing.T) {
	cordonTaint := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	otherEffect := corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoExecute}
	notReady := corev1.Taint{Key: clusterv1alpha1.TaintClusterNotReady, Effect: corev1.TaintEffectNoSchedule}
	valued := cordonTaint
	valued.Value = "maintenance"

	tests := map[string]struct {
		change       func([]corev1.Taint) []corev1.Taint
		before, want []corev1.Taint
	}{
		"cordon adds the taint at the end":                   {addCordonTaint, []corev1.Taint{notReady}, []corev1.Taint{notReady, cordonTaint}},
		"cordon does not change a cordoned cluster":          {addCordonTaint, []corev1.Taint{valued, notReady}, []corev1.Taint{valued, notReady}},
		"a taint with another effect is a different taint":   {addCordonTaint, []corev1.Taint{otherEffect}, []corev1.Taint{otherEffect, cordonTaint}},
		"uncordon removes the taint regardless of its value": {removeCordonTaint, []corev1.Taint{notReady, valued}, []corev1.Taint{notReady}},
		"uncordon keeps all other taints":                    {removeCordonTaint, []corev1.Taint{notReady, otherEffect}, []corev1.Taint{notReady, otherEffect}},
		"uncordon does not change an untainted cluster":      {removeCordonTaint, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := append([]corev1.Taint(nil), test.before...)
			if diff := cmp.Diff(test.want, test.change(test.before)); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.before); diff != "" {
				t.Errorf("the taints given were changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFormatOutcome(t *testing.T) {
	tests := map[string]struct {
		changed, dryRun bool
		want            string
	}{
		"changed":            {true, false, "east cluster cordoned"},
		"nothing to change":  {false, false, "east cluster already cordoned"},
		"dry run":            {true, true, "east cluster cordoned (dry run)"},
		"dry run of nothing": {false, true, "east cluster already cordoned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := formatOutcome("east", "cordoned", test.changed, test.dryRun); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
