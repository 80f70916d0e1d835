package deletionguard

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/guard"
)

// bindingWithLabelSelector returns a binding that excludes clusters without the label in its
// selector.
func bindingWithLabelSelector(name string) client.Object {
	bound := newBinding(name)
	bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	return bound
}

// workDeletedAgo returns a Work whose deletion began some time ago.
func workDeletedAgo(name string, ago time.Duration) *workv1alpha1.Work {
	karmadaWork := newDeletedWork(name)
	karmadaWork.DeletionTimestamp = &metav1.Time{Time: noon.Add(-ago)}
	return karmadaWork
}

func TestDeletionAfterClusterChangeWaitsForGatherPeriod(t *testing.T) {
	w := newGuardFixture(t, bindingWithLabelSelector("web"))
	for ago, want := range map[time.Duration]time.Duration{0: guard.GatherPeriod, 2 * time.Second: guard.GatherPeriod - 2*time.Second, guard.GatherPeriod: 0} {
		decision, err := w.decide(t.Context(), readyCluster(), workDeletedAgo("web", ago), true)
		if err != nil || decision.RecheckAfter != want {
			t.Errorf("%s after the deletion began: the delay is %s, %v; want %s", ago, decision.RecheckAfter, err, want)
		}
		if want == 0 && decision.Action != guard.Delete {
			t.Errorf("a single deletion gives %v", decision.Action)
		}
	}
	confirmed := readyCluster()
	confirmed.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Format(time.RFC3339)}
	if decision, err := w.decide(t.Context(), confirmed, workDeletedAgo("web", 0), true); err != nil || decision.Action != guard.Delete {
		t.Errorf("a confirmed deletion gives %v, %v", decision.Action, err)
	}
}

func TestClusterChangeHoldsMassDeletion(t *testing.T) {
	gold := bindingWithLabelSelector("web").(*workv1alpha2.ResourceBinding).Spec.Placement.ClusterAffinity
	for name, hold := range map[string]func(name string) []client.Object{
		"a label": func(name string) []client.Object { return []client.Object{bindingWithLabelSelector(name)} },
		"a label that the affinity group in use requires": func(name string) []client.Object {
			bound := newBinding(name)
			bound.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "gold", ClusterAffinity: *gold}, {AffinityName: "any"}}
			bound.Status.SchedulerObservedAffinityName = "gold"
			return []client.Object{bound}
		},
		"a label that the dependents require": attachedBinding(func(dependent *workv1alpha2.ResourceBinding) {
			dependent.Spec.Placement.ClusterAffinity = gold
		}),
		"a region to spread by": func(name string) []client.Object {
			bound := newBinding(name)
			bound.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldRegion}}
			return []client.Object{bound}
		},
	} {
		t.Run(name, func(t *testing.T) {
			works, stored := newDeletedWorks(20, hold)
			w := newGuardFixture(t, stored...)
			w.now = func() time.Time { return noon.Add(guard.GatherPeriod) }
			for _, karmadaWork := range works {
				karmadaWork.DeletionTimestamp = &metav1.Time{Time: noon.Add(guard.GatherPeriod)}
				if _, err := w.decide(t.Context(), readyCluster(), karmadaWork, true); err != nil {
					t.Fatal(err)
				}
				karmadaWork.DeletionTimestamp = &metav1.Time{Time: noon}
			}
			for _, karmadaWork := range works {
				decision, err := w.decide(t.Context(), readyCluster(), karmadaWork, true)
				if err != nil || decision.Action != guard.Hold || decision.Reason != guard.ReasonClusterChanged {
					t.Fatalf("%s: action %v, reason %v, %v", karmadaWork.Name, decision.Action, decision.Reason, err)
				}
			}
		})
	}
}

// A binding that lost its label in one cluster runs in others. These copies are no reason to delete
// the copies in the changed cluster, but a recorded departure is.
func TestClusterChangeWithExplanations(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   guard.Action
	}{
		"healthy copies in another cluster": {func(bound *workv1alpha2.ResourceBinding) {
			bound.Spec.Clusters, bound.Status.AggregatedStatus = healthyBinding("web", "m2").Spec.Clusters, healthyBinding("web", "m2").Status.AggregatedStatus
		}, guard.Hold},
		"a recorded departure": {departedFrom("m1", noon), guard.Delete},
	} {
		t.Run(name, func(t *testing.T) {
			works, stored := newDeletedWorks(20, func(name string) []client.Object {
				bound := bindingWithLabelSelector(name).(*workv1alpha2.ResourceBinding)
				test.change(bound)
				return []client.Object{bound}
			})
			w := newGuardFixture(t, stored...)
			var last Decision
			for _, karmadaWork := range append(works, works...) {
				karmadaWork.DeletionTimestamp = &metav1.Time{Time: noon.Add(-guard.GatherPeriod)}
				decision, err := w.decide(t.Context(), readyCluster(), karmadaWork, true)
				if err != nil {
					t.Fatal(err)
				}
				last = decision
			}
			if last.Action != test.want {
				t.Errorf("action %d, reason %d", last.Action, last.Reason)
			}
		})
	}
}

// A rebalancer moves 100 workloads out of a cluster at once: the scheduler replaces their copies, and the ends of
// the evictions record the departures. This also holds for workloads that the cluster no longer matches.
func TestMassDeletionByARebalancerIsNotHeld(t *testing.T) {
	for name, base := range map[string]func(name string) *workv1alpha2.ResourceBinding{
		"the cluster matches": func(name string) *workv1alpha2.ResourceBinding { return healthyBinding(name, "m2") },
		"the cluster lost its label": func(name string) *workv1alpha2.ResourceBinding {
			bound := healthyBinding(name, "m2")
			bound.Spec.Placement = bindingWithLabelSelector(name).(*workv1alpha2.ResourceBinding).Spec.Placement
			return bound
		},
	} {
		t.Run(name, func(t *testing.T) {
			works, stored := newDeletedWorks(100, func(name string) []client.Object {
				bound := base(name)
				bound.Spec.RescheduleTriggeredAt = new(metav1.NewTime(noon.Add(-time.Minute)))
				departedFrom("m1", noon)(bound)
				return []client.Object{bound}
			})
			w := newGuardFixture(t, stored...)
			w.limits = guard.Limits{ChangedCluster: 20, Namespace: 5, Fleet: 8}
			w.now = func() time.Time { return noon.Add(guard.GatherPeriod) }
			for range 2 { // before and after the deletions are counted
				for _, karmadaWork := range works {
					decision, err := w.decide(t.Context(), readyCluster(), karmadaWork, true)
					if err != nil || decision.Action != guard.Delete {
						t.Fatalf("%s: action %v, reason %v, %v", karmadaWork.Name, decision.Action, decision.Reason, err)
					}
				}
			}
		})
	}
}
