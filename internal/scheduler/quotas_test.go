package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestQuotaEvents(t *testing.T) {
	refusedFor := func(reason string) func(*workv1alpha2.ResourceBinding) {
		return func(bound *workv1alpha2.ResourceBinding) {
			bound.Status.Conditions = []metav1.Condition{{Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: reason}}
		}
	}
	quota := func(limit, used string) *policyv1alpha1.FederatedResourceQuota {
		created := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: newBinding().Namespace, Name: "team"}}
		created.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limit)}
		created.Status.OverallUsed = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(used)}
		return created
	}
	elsewhere := quota("20", "10")
	elsewhere.Namespace = "elsewhere"
	cases := map[string]struct {
		bound         *workv1alpha2.ResourceBinding
		before, after *policyv1alpha1.FederatedResourceQuota
		want          int
	}{
		"a raised limit":              {newBinding(refusedFor("QuotaExceeded")), quota("10", "10"), quota("20", "10"), 1},
		"less usage":                  {newBinding(refusedFor("QuotaExceeded")), quota("10", "10"), quota("10", "8"), 1},
		"a deleted quota":             {newBinding(refusedFor("QuotaExceeded")), quota("10", "10"), nil, 1},
		"more usage":                  {newBinding(refusedFor("QuotaExceeded")), quota("10", "8"), quota("10", "9"), 0},
		"another namespace":           {newBinding(refusedFor("QuotaExceeded")), quota("10", "10"), elsewhere, 0},
		"a binding that fits nowhere": {newBinding(refusedFor("NoClusterFit")), quota("10", "10"), quota("20", "10"), 0},
		"a scheduled binding":         {newBinding(), quota("10", "10"), quota("20", "10"), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newSource(t, newTestScheduler(t, withoutVersion(tc.bound)))
			if tc.after == nil {
				o.quotaHandlers().OnDelete(tc.before)
			} else {
				o.quotaHandlers().OnUpdate(tc.before, tc.after)
			}
			if got := o.queue.Len(); got != tc.want {
				t.Errorf("%d bindings queued, want %d", got, tc.want)
			}
		})
	}
}
