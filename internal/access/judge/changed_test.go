package judge

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/guard"
)

// labelled is a binding that left a cluster without the label.
func labelled(name string) client.Object {
	bound := boundTo(name)
	bound.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}}
	return bound
}

// begun is a Work whose deletion began a while ago.
func begun(name string, ago time.Duration) *workv1alpha1.Work {
	of := leaving(name)
	of.DeletionTimestamp = &metav1.Time{Time: noon.Add(-ago)}
	return of
}

func TestTheFirstDeletionAfterAChangeOfTheClusterWaitsForTheOthers(t *testing.T) {
	w := newWorld(t, labelled("web"))
	for ago, want := range map[time.Duration]time.Duration{0: gathered, 2 * time.Second: gathered - 2*time.Second, gathered: 0} {
		ruling, err := w.Decide(t.Context(), readyCluster(), begun("web", ago), true)
		if err != nil || ruling.After != want {
			t.Errorf("%s after it began: decided again after %s, %v; want %s", ago, ruling.After, err, want)
		}
		if want == 0 && ruling.Verdict != guard.Delete {
			t.Errorf("a single deletion gives %v", ruling.Verdict)
		}
	}
	confirmed := readyCluster()
	confirmed.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Format(time.RFC3339)}
	if ruling, err := w.Decide(t.Context(), confirmed, begun("web", 0), true); err != nil || ruling.Verdict != guard.Delete {
		t.Errorf("a confirmed deletion gives %v, %v", ruling.Verdict, err)
	}
}

func TestAChangeOfTheClusterThatExcludesManyWorkloadsDeletesNone(t *testing.T) {
	gold := labelled("web").(*workv1alpha2.ResourceBinding).Spec.Placement.ClusterAffinity
	for name, hold := range map[string]func(name string) []client.Object{
		"a label": func(name string) []client.Object { return []client.Object{labelled(name)} },
		"a label that the affinity group in use asks for": func(name string) []client.Object {
			bound := boundTo(name)
			bound.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "gold", ClusterAffinity: *gold}, {AffinityName: "any"}}
			bound.Status.SchedulerObservedAffinityName = "gold"
			return []client.Object{bound}
		},
		"a label that the workloads ask for which need it": following(func(dependent *workv1alpha2.ResourceBinding) {
			dependent.Spec.Placement.ClusterAffinity = gold
		}),
		"a region to spread by": func(name string) []client.Object {
			bound := boundTo(name)
			bound.Spec.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldRegion}}
			return []client.Object{bound}
		},
	} {
		t.Run(name, func(t *testing.T) {
			works, stored := herd(20, hold)
			for i := range 200 {
				other := leaving(fmt.Sprintf("other%03d", i))
				other.DeletionTimestamp, other.Finalizers = nil, nil
				stored = append(stored, other)
			}
			w := newWorld(t, stored...)
			w.now = func() time.Time { return noon.Add(gathered) }
			w.changes.note(boundTo("unrelated"), "")
			for _, of := range works {
				ruling, err := w.Decide(t.Context(), readyCluster(), of, true)
				if err != nil || ruling.Verdict != guard.Hold || ruling.Reason != guard.ClusterChanged {
					t.Fatalf("%s: verdict %v, reason %v, %v", of.Name, ruling.Verdict, ruling.Reason, err)
				}
			}
		})
	}
}
