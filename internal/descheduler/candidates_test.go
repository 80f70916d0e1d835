package descheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
)

func aggregated() *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}
}

func weighted(weights *policyv1alpha1.ClusterPreferences) *policyv1alpha1.ReplicaSchedulingStrategy {
	return &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: weights,
	}
}

// recordPlacement records the placement of the binding as applied by the scheduler.
func recordPlacement(bound *workv1alpha2.ResourceBinding) {
	applied, err := placement.AppliedPlacement(bound.Spec.Placement)
	if err != nil {
		panic(err)
	}
	bound.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: applied}
}

// placedWith returns a change to another division of replicas.
func placedWith(strategy *policyv1alpha1.ReplicaSchedulingStrategy) func(*workv1alpha2.ResourceBinding) {
	return func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: strategy}
		recordPlacement(bound)
	}
}

// findChanged returns a lookup in which one cluster differs from a ready cluster.
func findChanged(changed string, change func(*clusterv1alpha1.Cluster)) placement.ClusterLookup {
	return func(name string) *clusterv1alpha1.Cluster {
		cluster := newCluster(name)
		if name == changed {
			change(cluster)
		}
		return cluster
	}
}

func TestQualifyingBindings(t *testing.T) {
	type change = func(*workv1alpha2.ResourceBinding)
	ofKind := func(apiVersion, kind string) change {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = apiVersion, kind
		}
	}
	tests := map[string]struct {
		change change
		want   bool
	}{
		"a Deployment whose replicas are aggregated": {func(*workv1alpha2.ResourceBinding) {}, true},
		"a StatefulSet":                          {ofKind("apps/v1", "StatefulSet"), true},
		"a custom kind with replicas":            {ofKind("apps.kruise.io/v1alpha1", "CloneSet"), true},
		"a Job, whose completions cannot change": {ofKind("batch/v1", "Job"), false},
		"a custom kind with the name Job":        {ofKind("batch.volcano.sh/v1alpha1", "Job"), true},
		"an object without replicas":             {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas, b.Spec.ReplicaRequirements = 0, nil }, false},
		"a workload with several components":     {func(b *workv1alpha2.ResourceBinding) { b.Spec.Components = make([]workv1alpha2.Component, 2) }, false},
		"a workload with one component":          {func(b *workv1alpha2.ResourceBinding) { b.Spec.Components = make([]workv1alpha2.Component, 1) }, true},
		"dynamic weights":                        {placedWith(weighted(&policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas})), true},
		"static weights":                         {placedWith(weighted(&policyv1alpha1.ClusterPreferences{})), false},
		"no weights":                             {placedWith(weighted(nil)), false},
		"duplicated replicas":                    {placedWith(&policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDuplicated}), false},
		"no division":                            {placedWith(nil), false},
		"no placement":                           {func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }, false},
		"no record of a scheduler":               {func(b *workv1alpha2.ResourceBinding) { b.Annotations = nil }, false},
		"an invalid record":                      {func(b *workv1alpha2.ResourceBinding) { b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "{" }, false},
		"a record of null": {func(b *workv1alpha2.ResourceBinding) {
			b.Annotations[policyv1alpha1.AppliedPlacementAnnotation] = "null"
		}, false},
		"a placement that the scheduler did not apply": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{}
		}, false},
		"a generation that the scheduler has not observed": {func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, false},
		"replicas that the scheduler has not placed":       {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas++ }, false},
		"a reschedule request": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RescheduleTriggeredAt, b.Status.LastScheduledTime = &metav1.Time{Time: noon}, &metav1.Time{Time: noon.Add(-time.Minute)}
		}, false},
		"a binding that is being deleted": {func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: noon} }, false},
		"a dependency":                    {func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }, false},
		"suspended scheduling": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
		}, false},
		"another scheduler that reports like the default scheduler": {func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "volcano" }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newBinding("web", test.change)
			before := bound.DeepCopy()
			if got := candidatesOf(bound, newCluster); len(got) > 0 != test.want {
				t.Errorf("candidates %+v", got)
			}
			if diff := cmp.Diff(before, bound); diff != "" {
				t.Errorf("the binding was changed: %s", diff)
			}
		})
	}
}

func TestCandidates(t *testing.T) {
	withStatus := func(items ...workv1alpha2.AggregatedStatusItem) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus = items }
	}
	both := []candidate{{"m1", 5, unknownReady}, {"m2", 2, unknownReady}}
	one := []candidate{{"m1", 5, 3}}
	tests := map[string]struct {
		change   func(*workv1alpha2.ResourceBinding)
		clusters placement.ClusterLookup
		want     []candidate
	}{
		"fewer ready replicas than assigned":       {want: one},
		"no reported status":                       {change: withStatus(), want: both},
		"a status without content":                 {change: withStatus(newStatus("m1", ""), newStatus("m2", "")), want: both},
		"a status without ready replicas":          {change: withStatus(newStatus("m1", `{"replicas":5}`), newStatus("m2", `{}`)), want: both},
		"ready replicas that are no number":        {change: withStatus(newStatus("m1", `{"readyReplicas":"3"}`), newStatus("m2", `{"readyReplicas":-2}`)), want: both},
		"all replicas are ready":                   {change: withStatus(newStatus("m1", `{"readyReplicas":5}`), newStatus("m2", `{"readyReplicas":2}`))},
		"more replicas are ready than assigned":    {change: withStatus(newStatus("m1", `{"readyReplicas":6}`), newStatus("m2", `{"readyReplicas":2}`))},
		"a target without replicas":                {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas, b.Spec.Replicas = 0, 2 }},
		"the manifest is not applied":              {change: func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus[0].Applied = false }},
		"an eviction from another cluster":         {change: func(b *workv1alpha2.ResourceBinding) { evict(b, "m3") }, want: one},
		"an eviction from the cluster":             {change: func(b *workv1alpha2.ResourceBinding) { evict(b, "m1") }},
		"dispatching to the cluster is suspended":  {change: suspendDispatching},
		"a cluster that is not registered":         {clusters: func(string) *clusterv1alpha1.Cluster { return nil }},
		"a cluster that is not ready":              {clusters: findChanged("m1", func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionUnknown })},
		"a cluster without conditions":             {clusters: findChanged("m1", func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil })},
		"another cluster is not ready":             {clusters: findChanged("m2", func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }), want: one},
		"another cluster is being removed":         {clusters: findChanged("m2", func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} })},
		"a cluster that is a target a second time": {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[1].Name = "m1" }, want: one},
		"the second target of a cluster is ignored": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters[0].Name, b.Spec.Clusters[0].Replicas, b.Spec.Clusters[1].Replicas = "m2", 2, 5
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bound := newBinding("web")
			if test.change != nil {
				test.change(bound)
			}
			if test.clusters == nil {
				test.clusters = newCluster
			}
			if diff := cmp.Diff(test.want, candidatesOf(bound, test.clusters)); diff != "" {
				t.Errorf("candidates (-want +got):\n%s", diff)
			}
		})
	}
}

func evict(bound *workv1alpha2.ResourceBinding, from string) {
	bound.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: from}}
}

func suspendDispatching(bound *workv1alpha2.ResourceBinding) {
	bound.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{
		DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{"m1"}},
	}}
}

func FuzzReadyReplicas(f *testing.F) {
	for _, seed := range []string{"", "null", "{}", `{"readyReplicas":3}`, `{"readyReplicas":-1}`, `{"readyReplicas":1e3}`, `{"readyReplicas":99999999999999999999}`, `{"readyReplicas":{}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		item := newStatus("m1", "")
		item.Status = &runtime.RawExtension{Raw: []byte(raw)}
		if got := readyReplicas(&item); got < unknownReady {
			t.Errorf("%d ready replicas", got)
		}
	})
}

func BenchmarkCandidates(b *testing.B) {
	for _, clusters := range []int{2, 100} {
		bound := newBinding("web")
		bound.Spec.Clusters, bound.Status.AggregatedStatus = nil, nil
		for i := range clusters {
			name := fmt.Sprintf("m%d", i)
			bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
			bound.Status.AggregatedStatus = append(bound.Status.AggregatedStatus, newStatus(name,
				`{"availableReplicas":2,"generation":3,"observedGeneration":3,"readyReplicas":2,"replicas":2,"resourceTemplateGeneration":2,"updatedReplicas":2}`))
		}
		b.Run(fmt.Sprintf("%d clusters", clusters), func(b *testing.B) {
			for b.Loop() {
				candidatesOf(bound, newCluster)
			}
		})
	}
}
