package bindingstatus

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

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
