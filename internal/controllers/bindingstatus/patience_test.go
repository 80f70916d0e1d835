package bindingstatus

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestUnderWay(t *testing.T) {
	item := func(cluster string, applied bool, message string, health workv1alpha2.ResourceHealth) workv1alpha2.AggregatedStatusItem {
		return workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: applied, AppliedMessage: message, Health: health}
	}
	healthy := func(cluster string) workv1alpha2.AggregatedStatusItem {
		return item(cluster, true, "", workv1alpha2.ResourceHealthy)
	}
	reporting := func(cluster, status string) workv1alpha2.AggregatedStatusItem {
		reported := healthy(cluster)
		reported.Status = &runtime.RawExtension{Raw: []byte(status)}
		return reported
	}
	cases := map[string]struct {
		items []workv1alpha2.AggregatedStatusItem
		want  bool
	}{
		"a cluster is in the middle of a rolling update": {[]workv1alpha2.AggregatedStatusItem{
			healthy("m1"), reporting("m2", `{"replicas":2,"updatedReplicas":1,"readyReplicas":2}`),
		}, true},
		"a cluster has an older template than another": {[]workv1alpha2.AggregatedStatusItem{
			reporting("m1", `{"resourceTemplateGeneration":3}`), reporting("m2", `{"resourceTemplateGeneration":2}`),
		}, true},
		"all clusters have the same template": {[]workv1alpha2.AggregatedStatusItem{
			reporting("m1", `{"resourceTemplateGeneration":3}`), reporting("m2", `{"resourceTemplateGeneration":3}`),
		}, false},
		"a cluster has not answered":            {[]workv1alpha2.AggregatedStatusItem{healthy("m1")}, true},
		"a cluster is not healthy yet":          {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), item("m2", true, "", workv1alpha2.ResourceUnhealthy)}, true},
		"a cluster has not been served yet":     {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), item("m2", false, "", workv1alpha2.ResourceUnknown)}, true},
		"a refusal is an answer":                {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), item("m2", false, "refused", workv1alpha2.ResourceUnknown)}, false},
		"all are healthy":                       {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), healthy("m2")}, false},
		"a cluster that is leaving is no cause": {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), healthy("m2"), item("m3", true, "", workv1alpha2.ResourceUnknown)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := underWay(sets.New("m1", "m2"), tc.items); got != tc.want {
				t.Errorf("underWay = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPatienceHasALimitAndStartsAnew(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p, request := newPatience(time.Second, 3*time.Second), reconcile.Request{}
	for _, step := range []struct{ after, want time.Duration }{
		{0, time.Second}, {400 * time.Millisecond, 600 * time.Millisecond}, {600 * time.Millisecond, 0}, {0, time.Second},
	} {
		now = now.Add(step.after)
		if got := p.wait(request, now); got != step.want {
			t.Errorf("wait = %s, want %s", got, step.want)
		}
	}
	p.over(request)
	if len(p.since) != 0 {
		t.Error("a binding that is done is still remembered")
	}
}

func TestManyUnderWayShareABudget(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newPatience(time.Second, time.Second)
	written := 0
	for round := range 2 {
		for i := range 100 {
			request := reconcile.Request{}
			request.Name = string(rune('a' + i))
			if p.wait(request, now.Add(time.Duration(round)*time.Second)) == 0 {
				written++
			}
		}
	}
	if written != progressPerSecond {
		t.Errorf("%d were written, want %d", written, progressPerSecond)
	}
}
