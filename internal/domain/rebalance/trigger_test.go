package rebalance

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
)

// newBinding returns the binding of the Deployment shop/web.
func newBinding(changes ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-deployment", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id"},
	}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	bound.Spec.Placement, bound.Spec.Replicas = &policyv1alpha1.Placement{}, 2
	for _, change := range changes {
		change(bound)
	}
	return bound
}

func TestNeedsTrigger(t *testing.T) {
	for name, test := range map[string]struct {
		requested *metav1.Time
		want      bool
	}{
		"no request":                   {nil, true},
		"an earlier request":           {new(metav1.NewTime(noon.Add(-time.Second))), true},
		"a request of the same second": {new(metav1.NewTime(noon)), false},
		"a later request":              {new(metav1.NewTime(noon.Add(time.Second))), false},
	} {
		t.Run(name, func(t *testing.T) {
			bound := newBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = test.requested })
			if got := NeedsTrigger(bound, noon); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestResultNamesProblems(t *testing.T) {
	web := deployment("web")
	otherGroup, neverPropagated := web, Workload{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work", Namespace: "shop", Name: "w"}
	otherGroup.APIVersion = "v1"
	tests := map[string]struct {
		workload Workload
		bound    *workv1alpha2.ResourceBinding
		want     appsv1alpha1.RebalanceResult
		problem  string
	}{
		"a workload":           {workload: web, bound: newBinding(), want: appsv1alpha1.RebalanceSuccessful},
		"no binding":           {workload: web, want: appsv1alpha1.RebalanceFailed, problem: "no policy propagates it"},
		"an unpropagated kind": {workload: neverPropagated, want: appsv1alpha1.RebalanceFailed, problem: "never propagated"},
		"another API group":    {workload: otherGroup, bound: newBinding(), want: appsv1alpha1.RebalanceSuccessful, problem: "apiVersion apps/v1"},
		"a dependency": {workload: web, want: appsv1alpha1.RebalanceSuccessful, problem: "dependency", bound: newBinding(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement, b.Spec.RequiredBy = nil, []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "api-deployment"}}
		})},
		"suspended scheduling": {workload: web, want: appsv1alpha1.RebalanceSuccessful, problem: "suspended", bound: newBinding(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		})},
		"an unclaimed template": {workload: web, want: appsv1alpha1.RebalanceSuccessful, problem: "no policy claims it", bound: newBinding(func(b *workv1alpha2.ResourceBinding) {
			b.Labels = nil
		})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			entry, problem := Result(test.workload, nil)
			if test.bound != nil {
				entry, problem = Result(test.workload, test.bound)
			}
			if entry.Workload != test.workload || entry.Result != test.want || !strings.Contains(problem, test.problem) || (problem == "") != (test.problem == "") {
				t.Errorf("got %+v, problem %q", entry, problem)
			}
			if isNotFound := entry.Reason == appsv1alpha1.RebalanceObjectNotFound; isNotFound != (test.bound == nil) {
				t.Errorf("reason %q", entry.Reason)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var problems []Problem
	for range 1000 {
		problems = append(problems, Problem{Workload: deployment(strings.Repeat("x", 50)), Text: "it has no binding"})
	}
	if text := DescribeProblems(problems); len(text) > maxMessageBytes || !strings.Contains(text, "990 more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	want := "Triggered a fresh scheduling of 2 workloads; 1 workloads have no binding"
	if got := DescribeResults(entries{successful("a"), failed("b"), successful("c")}); got != want {
		t.Errorf("got %q", got)
	}
}
