package bindingstatus

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestRolloutInProgress(t *testing.T) {
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
		"a cluster has not reported":                {[]workv1alpha2.AggregatedStatusItem{healthy("m1")}, true},
		"a cluster is not healthy yet":              {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), item("m2", true, "", workv1alpha2.ResourceUnhealthy)}, true},
		"a cluster has no manifest yet":             {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), item("m2", false, "", workv1alpha2.ResourceUnknown)}, true},
		"an apply error is a report":                {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), item("m2", false, "forbidden", workv1alpha2.ResourceUnknown)}, false},
		"all are healthy":                           {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), healthy("m2")}, false},
		"a cluster that is not a target is ignored": {[]workv1alpha2.AggregatedStatusItem{healthy("m1"), healthy("m2"), item("m3", true, "", workv1alpha2.ResourceUnknown)}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isRolloutInProgress(sets.New("m1", "m2"), tc.items); got != tc.want {
				t.Errorf("underWay = %v, want %v", got, tc.want)
			}
		})
	}
}

func requestNumber(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}}
}

func TestProgressThrottleRestartsAfterWrite(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newProgressThrottle(policy, time.Second)
	for _, step := range []struct{ after, want time.Duration }{
		{0, time.Second}, {400 * time.Millisecond, 600 * time.Millisecond}, {600 * time.Millisecond, 0}, {0, time.Second},
	} {
		now = now.Add(step.after)
		if got := p.remainingDelay(requestNumber(1), now); got != step.want {
			t.Errorf("wait = %s, want %s", got, step.want)
		}
	}
	p.stop(requestNumber(1))
	if len(p.waitingSince) != 0 {
		t.Error("a finished binding is still held")
	}
}

// Each binding is reconciled when its delay is over, as the queue would do.
func TestRolloutsShareWriteBudget(t *testing.T) {
	const many = 1000
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newProgressThrottle(policy, time.Second)
	due := map[int]time.Time{}
	for i := range many {
		due[i] = start
	}
	perSecond, reconciles := map[int]int{}, 0
	for at := start; len(due) > 0 && at.Before(start.Add(time.Hour)); at = at.Add(100 * time.Millisecond) {
		for i := range many {
			if next, waits := due[i]; !waits || next.After(at) {
				continue
			}
			reconciles++
			if wait := p.remainingDelay(requestNumber(i), at); wait > 0 {
				due[i] = at.Add(wait)
				continue
			}
			perSecond[int(at.Sub(start)/time.Second)]++
			delete(due, i)
		}
	}
	last := int(policy.MaxProgressDelay / time.Second)
	for second, written := range perSecond {
		if second > last || second < last && written > 2*policy.BindingProgressPerSecond {
			t.Errorf("%d are written after %d s", written, second)
		}
	}
	if len(due) > 0 || reconciles > 8*many {
		t.Errorf("%d are not written, %d reconciles of %d bindings", len(due), reconciles, many)
	}
}
