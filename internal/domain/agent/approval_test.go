package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

func TestRequireApproval(t *testing.T) {
	unapproved := corev1.Taint{Key: "cluster.karmada.io/unapproved", Effect: corev1.TaintEffectNoSchedule}
	withValue, evicting := unapproved, unapproved
	withValue.Value, evicting.Effect = "no", corev1.TaintEffectNoExecute
	other := corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}
	tests := map[string]struct{ taints, want []corev1.Taint }{
		"no taints":                         {want: []corev1.Taint{unapproved}},
		"another taint stays":               {taints: []corev1.Taint{other}, want: []corev1.Taint{other, unapproved}},
		"the same taint with another value": {taints: []corev1.Taint{withValue, other}, want: []corev1.Taint{other, unapproved}},
		"the same key with another effect":  {taints: []corev1.Taint{evicting}, want: []corev1.Taint{evicting, unapproved}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			created := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{Taints: test.taints}}
			agent.RequireApproval(created)
			if diff := cmp.Diff(test.want, created.Spec.Taints); diff != "" {
				t.Errorf("taints (-want +got):\n%s", diff)
			}
		})
	}
}
