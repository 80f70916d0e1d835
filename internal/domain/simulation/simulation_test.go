package simulation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/policy"
)

// Placements of the tests.
const (
	everywhere = `{}`
	onM1       = `{clusterAffinity: {clusterNames: [m1]}}`
	labelled   = `{clusterAffinity: {labelSelector: {matchLabels: {name: m1}}}}`
	evenly     = `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}`
	evenOnM1M2 = `{clusterAffinity: {clusterNames: [m1, m2]}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}`
	byCapacity = `{replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}}`
	oneCluster = `{spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]}`
	tolerantM1 = `{clusterAffinity: {clusterNames: [m1]}, clusterTolerations: [{key: down, operator: Exists, tolerationSeconds: 300}]}`
)

// describe returns "effect: before -> after (reason: message)".
func describe(o Outcome) string {
	text := fmt.Sprintf("%s: %s -> %s", o.Effect, describeTargets(o.Before), describeTargets(o.After))
	if o.Reason != "" {
		text += " [" + o.Reason + "]"
	}
	if o.Message != "" {
		text += " " + o.Message
	}
	return text
}

func describeTargets(targets []diagnose.Target) string {
	if len(targets) == 0 {
		return "none"
	}
	texts := make([]string, len(targets))
	for i, target := range targets {
		texts[i] = target.Cluster
		if target.Replicas != nil {
			texts[i] += fmt.Sprintf(" %d", *target.Replicas)
		}
	}
	return strings.Join(texts, ", ")
}

func taint(cluster, key string, effect corev1.TaintEffect) ClusterChanges {
	return ClusterChanges{Taints: []TaintChange{{Cluster: cluster, Taint: corev1.Taint{Key: key, Effect: effect}}}}
}

func TestClusterChanges(t *testing.T) {
	unlabelled := ClusterChanges{Labels: []LabelChange{{Cluster: "m1", Key: "name", Remove: true}}}
	relabelled := ClusterChanges{Labels: []LabelChange{{Cluster: "m2", Key: "name", Value: "m1"}}}
	tests := map[string]struct {
		placement string
		replicas  int64
		changes   ClusterChanges
		evictions bool
		change    func(*workv1alpha2.ResourceBinding)
		want      string
	}{
		"a divided workload moves away from a removed cluster": {
			placement: evenOnM1M2, replicas: 4, changes: ClusterChanges{Without: []string{"m1"}},
			want: "changed: m1 2, m2 2 -> m2 4 m1: being removed",
		},
		"a duplicated workload loses a removed cluster": {
			placement: everywhere, replicas: 2, changes: ClusterChanges{Without: []string{"m1"}},
			want: "changed: m1 2, m2 2, m3 2 -> m2 2, m3 2 m1: being removed",
		},
		"the only cluster is removed": {
			placement: onM1, replicas: -1, changes: ClusterChanges{Without: []string{"m1"}},
			want: "lastCopyLost: m1 -> none [NoClusterFit] 0/3 clusters are available: cluster m1: being removed",
		},
		"the next affinity group takes over": {
			placement: `{clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b, clusterNames: [m2, m9]}]}`,
			replicas:  -1, changes: ClusterChanges{Without: []string{"m1"}},
			want: `changed: m1 -> m2 m1: being removed; affinity group a: 0/3 clusters are available: cluster m1: being removed; The placement names cluster "m9", which does not exist: correct the name, or join the cluster`,
		},
		"a cluster of a spread constraint is replaced": {
			placement: oneCluster, replicas: -1, changes: ClusterChanges{Without: []string{"m1"}},
			want: "changed: m1 -> m2 m1: being removed",
		},
		"the last label that the affinity selects is removed": {
			placement: labelled, replicas: 2, changes: unlabelled,
			want: "lastCopyLost: m1 2 -> none [NoClusterFit] 0/3 clusters are available: no cluster matches the cluster affinity (labelSelector name=m1); m1: not selected by the cluster affinity",
		},
		"a cluster gets a label that the affinity selects": {
			placement: labelled, replicas: 2, changes: relabelled,
			want: "changed: m1 2 -> m1 2, m2 2 every fitting cluster gets the same",
		},
		"a divided workload stays in a cluster whose label goes": {
			placement: strings.Replace(labelled, "}}}}", "}}}, replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}", 1), replicas: 2, changes: unlabelled,
			want: "unchanged: m1 2 -> m1 2 stays: a divided workload moves only if its placement, its replicas or its set of clusters changes",
		},
		"a NoSchedule taint moves nothing": {
			placement: everywhere, replicas: 2, changes: taint("m1", "busy", corev1.TaintEffectNoSchedule),
			want: "unchanged: m1 2, m2 2, m3 2 -> m1 2, m2 2, m3 2",
		},
		"a NoExecute taint moves nothing if evictions are off": {
			placement: everywhere, replicas: 2, changes: taint("m1", "down", corev1.TaintEffectNoExecute),
			want: "unchanged: m1 2, m2 2, m3 2 -> m1 2, m2 2, m3 2",
		},
		"a NoExecute taint evicts": {
			placement: evenOnM1M2, replicas: 4, changes: taint("m1", "down", corev1.TaintEffectNoExecute), evictions: true,
			want: "changed: m1 2, m2 2 -> m2 4 m1: evicted: the taint down:NoExecute is not tolerated; the old copy stays until healthy copies replace it",
		},
		"the old copy of an eviction without a replacement is not lost": {
			placement: onM1, replicas: -1, changes: taint("m1", "down", corev1.TaintEffectNoExecute), evictions: true,
			want: "unplaced: m1 -> none [NoClusterFit] 0/3 clusters are available: cluster m1: untolerated taint {down=:NoExecute}; m1: evicted: the taint down:NoExecute is not tolerated; the old copy stays until healthy copies replace it",
		},
		"the old copy of an eviction with the purge mode Directly is lost": {
			placement: onM1, replicas: -1, changes: taint("m1", "down", corev1.TaintEffectNoExecute), evictions: true,
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}}
			},
			want: "lastCopyLost: m1 -> none [NoClusterFit] 0/3 clusters are available: cluster m1: untolerated taint {down=:NoExecute}; m1: evicted: the taint down:NoExecute is not tolerated",
		},
		"a toleration with a time delays the eviction": {
			placement: tolerantM1, replicas: -1, changes: taint("m1", "down", corev1.TaintEffectNoExecute), evictions: true,
			want: "unplaced: m1 -> none [NoClusterFit] 0/3 clusters are available: cluster m1: eviction in progress; m1: evicted after 5m0s: the taint down:NoExecute is not tolerated any longer; the old copy stays until healthy copies replace it",
		},
		"another taint is tolerated": {
			placement: tolerantM1, replicas: -1, changes: taint("m1", "down", corev1.TaintEffectNoSchedule), evictions: true,
			want: "unchanged: m1 -> m1",
		},
		"suspended scheduling keeps the other clusters": {
			placement: evenOnM1M2, replicas: 4, changes: ClusterChanges{Without: []string{"m1"}},
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
			},
			want: "unplaced: m1 2, m2 2 -> m2 2 [ClusterRemoved] not scheduled by this scheduler: the scheduling is suspended; m1: being removed",
		},
		"another scheduler": {
			placement: everywhere, replicas: 4, changes: unlabelled,
			change: func(b *workv1alpha2.ResourceBinding) { b.Spec.SchedulerName = "volcano" },
			want:   `notScheduled: m1 4, m2 4, m3 4 -> m1 4, m2 4, m3 4 [OtherScheduler] not scheduled by this scheduler: schedulerName is "volcano"`,
		},
		"no policy": {
			placement: onM1, replicas: -1, changes: ClusterChanges{Without: []string{"m1"}},
			change: func(b *workv1alpha2.ResourceBinding) { b.Labels = nil },
			want:   "lastCopyLost: m1 -> none [NotManagedByScheduler] not scheduled by this scheduler: no policy claims the object; m1: being removed",
		},
		"too little capacity elsewhere": {
			placement: byCapacity, replicas: 29, changes: ClusterChanges{Without: []string{"m1"}},
			want: "unplaced: m1 10, m2 10, m3 9 -> m2 10, m3 9 [Unschedulable] failed to assign replicas: failed to scale up: Clusters available replicas 0 are not enough to schedule: 10 more replicas wanted, room for 0 (m2 0, m3 0); cluster m1: being removed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kind := "Deployment"
			if test.replicas < 0 {
				kind = "ConfigMap"
			}
			p := policyFor(t, "web", test.placement, kind+"/web")
			w := newWorld(t, []*clusterv1alpha1.Cluster{member("m1", 10), member("m2", 10), member("m3", 10)}, []policy.Object{p}, template("web", test.replicas))
			if test.change != nil {
				test.change(w.Bindings[0].(*workv1alpha2.ResourceBinding))
			}
			if strings.Contains(test.want, "room for") {
				// The replicas use the whole capacity.
				for _, cluster := range w.Clusters {
					cluster.Status.ResourceSummary.Allocated = cluster.Status.ResourceSummary.Allocatable
				}
			}
			w.All, w.Changes, w.Settings.Evictions = true, test.changes, test.evictions
			result := Run(t.Context(), w.Input)
			if len(result.Objects) != 1 {
				t.Fatalf("%d objects", len(result.Objects))
			}
			if diff := cmp.Diff(test.want, describe(result.Objects[0])); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}
