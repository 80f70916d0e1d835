package binding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func suspendedIn(clusters ...string) *policyv1alpha1.Suspension {
	return &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: clusters}}
}

// requiredBy returns the snapshot of a dependent in clusters.
func requiredBy(name string, clusters ...string) workv1alpha2.BindingSnapshot {
	snapshot := workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name}
	for _, cluster := range clusters {
		snapshot.Clusters = append(snapshot.Clusters, workv1alpha2.TargetCluster{Name: cluster})
	}
	return snapshot
}

func TestIsDispatchSuspended(t *testing.T) {
	tests := map[string]struct {
		suspension *policyv1alpha1.Suspension
		requiredBy []workv1alpha2.BindingSnapshot
		record     string
		want       bool
	}{
		"no suspension":                    {},
		"suspension switched off":          {suspension: &policyv1alpha1.Suspension{Dispatching: new(false)}},
		"all clusters":                     {suspension: &policyv1alpha1.Suspension{Dispatching: new(true)}, want: true},
		"this cluster by name":             {suspension: suspendedIn("m1"), want: true},
		"another cluster by name":          {suspension: suspendedIn("m2")},
		"a dependent in this cluster":      {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("web", "m1")}, record: `{"shop/web":["m1"]}`, want: true},
		"a dependent in all its clusters":  {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("web", "m2", "m1")}, record: `{"shop/web":["*"]}`, want: true},
		"a dependent in another cluster":   {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("web", "m1", "m2")}, record: `{"shop/web":["m2"]}`},
		"a dependent that is elsewhere":    {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("web", "m2")}, record: `{"shop/web":["*"]}`},
		"a dependent that is not listed":   {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("api", "m1")}, record: `{"shop/web":["m1"]}`},
		"one of two dependents":            {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("api", "m1"), requiredBy("web", "m1")}, record: `{"shop/web":["m1"]}`, want: true},
		"a dependent, not its own cluster": {suspension: suspendedIn("m2"), requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("web", "m1")}, record: `{"shop/web":["m1"]}`, want: true},
		"an invalid record":                {requiredBy: []workv1alpha2.BindingSnapshot{requiredBy("web", "m1")}, record: `["m1"]`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{}
			bound.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: tc.record}
			bound.Spec.RequiredBy = tc.requiredBy
			if tc.suspension != nil {
				bound.Spec.Suspension = &workv1alpha2.Suspension{Suspension: *tc.suspension}
			}
			if got := IsDispatchSuspended(bound, "m1"); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestRecordSuspendedDependent(t *testing.T) {
	tests := map[string]struct {
		record     string
		suspension *policyv1alpha1.Suspension
		want       string
	}{
		"nothing for a dependent that is not suspended": {suspension: suspendedIn()},
		"the suspended clusters in which it is listed":  {suspension: suspendedIn("m3", "m2", "m9"), want: `{"shop/web":["m2","m3"]}`},
		"all its clusters":              {suspension: &policyv1alpha1.Suspension{Dispatching: new(true)}, want: `{"shop/web":["*"]}`},
		"the end of its suspension":     {record: `{"shop/web":["*"]}`, suspension: suspendedIn()},
		"another dependent stays":       {record: `{"shop/api":["m1"],"shop/web":["*"]}`, suspension: suspendedIn(), want: `{"shop/api":["m1"]}`},
		"an invalid record is replaced": {record: `[]`, suspension: suspendedIn("m1"), want: `{"shop/web":["m1"]}`},
		"an invalid record is removed":  {record: `[]`, suspension: suspendedIn()},
		"the same record":               {record: `{"shop/api":["m1"],"shop/web":["m1"]}`, suspension: suspendedIn("m1"), want: `{"shop/api":["m1"],"shop/web":["m1"]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := &workv1alpha2.ResourceBinding{}
			if tc.record != "" {
				bound.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: tc.record}
			}
			bound.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{requiredBy("api", "m1"), requiredBy("web", "m1", "m2", "m3")}
			for range 2 {
				RecordSuspendedDependent(bound, types.NamespacedName{Namespace: "shop", Name: "web"}, func(cluster string) bool { return suspends(tc.suspension, cluster) })
				if diff := cmp.Diff(tc.want, bound.Annotations[workv1alpha2.SuspendedByDependentsAnnotation]); diff != "" {
					t.Errorf("record (-want +got):\n%s", diff)
				}
			}
		})
	}
}
