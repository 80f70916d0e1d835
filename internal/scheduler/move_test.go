package scheduler

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

func goldMember(name string) *clusterv1alpha1.Cluster {
	cluster := member(name)
	cluster.Labels = map[string]string{"tier": "gold"}
	return cluster
}

// runningInMember1 is a binding for clusters with the label tier=gold that runs in member1.
func runningInMember1(t *testing.T, change ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	t.Helper()
	bound := newBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 4}}
	})
	applied, err := placement.AppliedPlacement(bound.Spec.Placement)
	if err != nil {
		t.Fatal(err)
	}
	bound.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: applied}
	for _, apply := range change {
		apply(bound)
	}
	return withoutVersion(bound)
}

// describeMove describes the targets, the evictions and the departures of a binding.
func describeMove(bound *workv1alpha2.ResourceBinding) string {
	text := []string{placement.DescribeTargets(&bound.Spec)}
	for _, task := range bound.Spec.GracefulEvictionTasks {
		text = append(text, fmt.Sprintf("evicted from %s by %s: %s", task.FromCluster, task.Producer, task.Message))
	}
	if departed := bound.Annotations[workv1alpha2.DepartedClustersAnnotation]; departed != "" {
		text = append(text, "departed "+departed)
	}
	return strings.Join(text, "; ")
}

func TestMoveOfTheSchedulerKeepsTheCopy(t *testing.T) {
	cases := map[string]struct {
		change   func(*workv1alpha2.ResourceBinding)
		clusters []*clusterv1alpha1.Cluster
		want     string
	}{
		"the cluster of the workload lost its label, and another cluster has it": {
			clusters: []*clusterv1alpha1.Cluster{member("member1"), goldMember("member2")},
			want:     "member2:4; evicted from member1 by Scheduler: the scheduler chose member2",
		},
		"no other cluster takes the workload": {
			clusters: []*clusterv1alpha1.Cluster{member("member1"), member("member2")},
		},
		"a user excludes the cluster": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity.ExcludeClusters = []string{"member1"}
			},
			clusters: []*clusterv1alpha1.Cluster{goldMember("member1"), goldMember("member2")},
			want:     `member2:4; departed {"member1":"2026-01-02T12:00:00Z"}`,
		},
		"a user changes the placement, which still selects the cluster": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
					ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
					WeightPreference: &policyv1alpha1.ClusterPreferences{StaticWeightList: []policyv1alpha1.StaticClusterWeight{
						{TargetCluster: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member2"}}, Weight: 1},
					}},
				}
			},
			clusters: []*clusterv1alpha1.Cluster{goldMember("member1"), goldMember("member2")},
			want:     "member2:4; evicted from member1 by Scheduler: the scheduler chose member2",
		},
		"a user excludes every cluster": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity.ClusterNames = []string{"member3"}
			},
			clusters: []*clusterv1alpha1.Cluster{goldMember("member1"), goldMember("member2")},
			want:     `; departed {"member1":"2026-01-02T12:00:00Z"}`,
		},
		"the cluster is being removed": {
			clusters: []*clusterv1alpha1.Cluster{terminatingMember("member1"), goldMember("member2")},
			want:     "member2:4",
		},
		"the scheduler returns to a cluster": {
			change: func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters[0].Name = "member2"
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "member1", Producer: workv1alpha2.EvictionProducerScheduler}}
			},
			clusters: []*clusterv1alpha1.Cluster{goldMember("member1"), member("member2")},
			want:     "member1:4; evicted from member2 by Scheduler: the scheduler chose member1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bound := runningInMember1(t)
			if tc.change != nil {
				tc.change(bound)
			}
			l := newTestScheduler(t, bound, tc.clusters...)
			writes, _, stored := l.pass(t)
			if diff := cmp.Diff(tc.want, describeMove(stored)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"clusters", "status"}, writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if again, _, _ := l.pass(t); len(again) > 0 {
				t.Errorf("a second pass writes %v", again)
			}
		})
	}
}

// A rebalanced workload keeps its old copies like any other workload that the scheduler moves. Its departure is
// recorded when the eviction ends, so the deletion of the old copies is explained.
func TestRescheduleRequestKeepsTheCopy(t *testing.T) {
	inGroups := func(b *workv1alpha2.ResourceBinding) {
		inAffinityGroups(b)
		b.Spec.Placement.ClusterAffinities[0].ClusterNames = []string{"member1"}
		b.Spec.Placement.ClusterAffinities[1].ClusterNames = []string{"member2"}
		b.Status.SchedulerObservedAffinityName = "second"
	}
	cases := map[string]struct {
		change   func(*workv1alpha2.ResourceBinding)
		clusters []*clusterv1alpha1.Cluster
		want     string
	}{
		"the first affinity group fits again": {
			change: inGroups, clusters: []*clusterv1alpha1.Cluster{member("member1"), member("member2")},
			want: "member1:4; evicted from member2 by Scheduler: the scheduler chose member1",
		},
		"the first affinity group still does not fit": {change: inGroups, clusters: []*clusterv1alpha1.Cluster{member("member2")}, want: "member2:4"},
		"divided replicas leave a cluster that lost its label": {
			change: func(b *workv1alpha2.ResourceBinding) {
				divided(b)
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
			},
			clusters: []*clusterv1alpha1.Cluster{goldMember("member1"), member("member2")},
			want:     "member1:4; evicted from member2 by Scheduler: the scheduler chose member1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bound := newBinding(tc.change, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member2", Replicas: 4}}
				b.Status.LastScheduledTime, b.Spec.RescheduleTriggeredAt = new(noonPlus(-2)), new(noonPlus(-1))
			})
			applied, err := placement.AppliedPlacement(bound.Spec.Placement)
			if err != nil {
				t.Fatal(err)
			}
			bound.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: applied}
			l := newTestScheduler(t, withoutVersion(bound), tc.clusters...)
			_, _, stored := l.pass(t)
			if diff := cmp.Diff(tc.want, describeMove(stored)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, _, _ := l.pass(t); len(again) > 0 {
				t.Errorf("a second pass writes %v", again)
			}
		})
	}
}

// The targets and the eviction of the old copy are one write, so that no crash separates them.
func TestMoveSurvivesCrashesAroundWrites(t *testing.T) {
	var l *testScheduler
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			l = newTestScheduler(t, runningInMember1(t), member("member1"), goldMember("member2"))
			return l.karmada.(client.WithWatch) //nolint:forcetypeassert // newTestScheduler sets this type
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			l.karmada, l.liveReader, l.ownWrites = karmada, karmada, loop.NewWrites[request](nil)
			return func(ctx context.Context) error {
				_, err := l.Reconcile(ctx, requestFor("web-deployment"))
				return err
			}
		},
		FinalState: func(ctx context.Context, from client.Reader) (string, error) {
			stored := &workv1alpha2.ResourceBinding{}
			err := from.Get(ctx, requestFor("web-deployment").NamespacedName, stored)
			return describeMove(stored), err
		},
	}.Run(t)
}
