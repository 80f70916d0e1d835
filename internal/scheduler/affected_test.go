package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// withAffinityGroup selects clusters by the label tier=gold, and as overflow by tier=silver. The
// binding is scheduled.
func withAffinityGroup(bound *workv1alpha2.ResourceBinding) {
	tier := func(name string) policyv1alpha1.ClusterAffinity {
		return policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": name}}}
	}
	bound.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "home", ClusterAffinity: tier("gold"), OverflowAffinities: []policyv1alpha1.OverflowAffinityTerm{
			{AffinityName: "near", ClusterAffinity: tier("silver")},
		}},
		{AffinityName: "backup", ClusterAffinity: tier("bronze")},
	}
	bound.Status.SchedulerObservedAffinityName, bound.Status.SchedulerObservedGeneration = "home", bound.Generation
}

func TestClusterChangeQueuesOnlyAffectedBindings(t *testing.T) {
	cluster := func(tier string, change ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
		changed := member("member1")
		changed.Generation, changed.Labels = 1, map[string]string{"tier": tier}
		for _, apply := range change {
			apply(changed)
		}
		return changed
	}
	tainted := func(changed *clusterv1alpha1.Cluster) {
		changed.Generation, changed.Spec.Taints = 2, []corev1.Taint{{Key: "not-ready", Effect: corev1.TaintEffectNoSchedule}}
	}
	withMoreAPIs := func(changed *clusterv1alpha1.Cluster) {
		changed.Status.APIEnablements = append(changed.Status.APIEnablements, clusterv1alpha1.APIEnablement{GroupVersion: "example.io/v1"})
	}
	tests := map[string]struct {
		before, after *clusterv1alpha1.Cluster
		want          int
	}{
		"the affinity selects the labels before the change":       {cluster("gold"), cluster("none"), 1},
		"the affinity selects the labels after the change":        {cluster("none"), cluster("gold"), 1},
		"an overflow affinity selects the labels after":           {cluster("none"), cluster("silver"), 1},
		"only a group that is not in use selects the labels":      {cluster("none"), cluster("bronze"), 0},
		"neither the labels before nor after are selected":        {cluster("none"), cluster("other"), 0},
		"a taint of a selected cluster is gone":                   {cluster("gold", tainted), cluster("gold"), 1},
		"a taint of a cluster that is not selected is gone":       {cluster("none", tainted), cluster("none"), 0},
		"a selected cluster serves another API":                   {cluster("gold"), cluster("gold", withMoreAPIs), 1},
		"a cluster that is not selected serves another API":       {cluster("none"), cluster("none", withMoreAPIs), 0},
		"an unchanged cluster that the overflow affinity selects": {cluster("silver"), cluster("silver"), 0},
		"a new cluster that an overflow affinity selects":         {nil, cluster("silver"), 1},
		"a new cluster that is not selected":                      {nil, cluster("none"), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newSource(t, newTestScheduler(t, withoutVersion(newBinding(withAffinityGroup))))
			if test.before == nil {
				o.handleClusterAdded(test.after, false)
			} else {
				o.handleClusterUpdated(test.before, test.after)
			}
			if got := o.queue.Len(); got != test.want {
				t.Errorf("%d bindings queued, want %d", got, test.want)
			}
		})
	}
}

func TestBindingIsNotHandedToTwoWorkers(t *testing.T) {
	o := newSource(t, newTestScheduler(t, withoutVersion(newBinding())))
	o.handleBindingAdded(newBinding(), false)
	processed, _ := o.queue.Get()
	o.handleBindingUpdated(newBinding(), newBinding(func(bound *workv1alpha2.ResourceBinding) { bound.Generation = 2 }))
	o.handleBindingAdded(newBinding(named("other")), false)
	if next, _ := o.queue.Get(); next != requestFor("other") {
		t.Errorf("%s is handed out, want another binding than the one in process", next)
	}
	o.queue.Done(processed)
	if again, _ := o.queue.Get(); again != processed {
		t.Errorf("%s is handed out, want the binding that changed while it was processed", again)
	}
}
