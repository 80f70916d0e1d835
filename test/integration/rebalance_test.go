package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// A workload that left its first affinity group returns only when a user rebalances it. The old copy runs until
// the new one is healthy.
func TestRebalanceReturnsToTheFirstAffinityGroup(t *testing.T) {
	env := alone(t)
	setTaints := func(taints ...corev1.Taint) {
		testenv.Update(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = taints })
	}
	t.Cleanup(func() { setTaints() })
	setTaints(corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})

	template := deployment(env.Namespace(t), "web", 2)
	placement := policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "home", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{member1}}},
		{AffinityName: "spare", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{member2}}},
	}}
	startSimulatedRollout(t, env, member2, template, 2)
	env.Create(t, policyFor(t, placement, template), template)
	awaitInMember(t, env, member2, template, hasReplicas(2))
	setTaints()
	awaitRebalanceable(t, env, bindingOf(t, template))
	await(t, env.Karmada, bindingOf(t, template), hasClusters(member2))

	startSimulatedRollout(t, env, member1, template, 2)
	stdout, stderr, err := runKarmadactl(t, env, "rebalance", "deployment/web", "-n", template.Namespace)
	if err != nil || !strings.Contains(stdout, "moved") || !strings.Contains(stderr, "workloadrebalancer/rebalance-web-") {
		t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
	}
	await(t, env.Karmada, bindingOf(t, template), hasClusters(member1))
	awaitInMember(t, env, member1, template, hasReplicas(2))
	awaitNotInMember(t, env, member2, template)
}

// awaitRebalanceable waits until the last scheduling of a binding belongs to an earlier second, because a request
// of the same second has no effect.
func awaitRebalanceable(t *testing.T, env *testenv.Env, bound *workv1alpha2.ResourceBinding) {
	t.Helper()
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		if last := b.Status.LastScheduledTime; last == nil || time.Since(last.Time) < time.Second {
			return errors.New("not scheduled, or scheduled in this second")
		}
		return nil
	})
}

// The API server records the time at which a user changes the list. A workload that returns to the list is
// triggered at this time, and each result is reported.
func TestRebalancerFollowsItsList(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	web := deployment(namespace, "web", 1)
	env.Create(t, policyFor(t, placementOn(member1), web), web)
	awaitRebalanceable(t, env, bindingOf(t, web))
	reference := func(name string) appsv1alpha1.ObjectReference {
		return appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	}
	rebalancer := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	rebalancer.Spec.Workloads = []appsv1alpha1.ObjectReference{reference("web"), reference("missing")}
	if err := env.Karmada.Create(t.Context(), rebalancer); err != nil {
		t.Fatal(err)
	}
	hasResults := func(want ...string) func(*appsv1alpha1.WorkloadRebalancer) error {
		return func(r *appsv1alpha1.WorkloadRebalancer) error {
			var got []string
			for _, entry := range r.Status.ObservedWorkloads {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", entry.Workload.Name, entry.Result, entry.Reason)))
			}
			if r.Status.FinishTime == nil || r.Status.ObservedGeneration != r.Generation {
				return errors.New("not finished")
			}
			return checkEqual("results", want, got)
		}
	}
	await(t, env.Karmada, rebalancer, hasResults("missing Failed ReferencedBindingNotFound", "web Successful"))
	await(t, env.Karmada, bindingOf(t, web), func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("trigger time", &rebalancer.CreationTimestamp, b.Spec.RescheduleTriggeredAt)
	})
	awaitWarningEvent(t, env, rebalancer, appsv1alpha1.EventReasonRebalanceProblem, "missing", "no policy propagates it")

	testenv.Update(t, env.Karmada, rebalancer, func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.Workloads = r.Spec.Workloads[1:] })
	await(t, env.Karmada, rebalancer, hasResults("missing Failed ReferencedBindingNotFound", "web Successful"))
	await(t, env.Karmada, rebalancer, func(r *appsv1alpha1.WorkloadRebalancer) error {
		if r.Annotations[appsv1alpha1.RemovedWorkloadsAnnotation] == "" {
			return errors.New("the removal is not recorded")
		}
		return nil
	})
	awaitRebalanceable(t, env, bindingOf(t, web))
	testenv.Update(t, env.Karmada, rebalancer, func(r *appsv1alpha1.WorkloadRebalancer) {
		r.Spec.Workloads = []appsv1alpha1.ObjectReference{reference("web")}
	})
	await(t, env.Karmada, rebalancer, hasResults("web Successful"))
	await(t, env.Karmada, bindingOf(t, web), func(b *workv1alpha2.ResourceBinding) error {
		if !rebalancer.CreationTimestamp.Before(b.Spec.RescheduleTriggeredAt) {
			return fmt.Errorf("triggered at %s", b.Spec.RescheduleTriggeredAt)
		}
		return nil
	})

	testenv.Update(t, env.Karmada, rebalancer, func(r *appsv1alpha1.WorkloadRebalancer) { r.Spec.TTLSecondsAfterFinished = new(int32(0)) })
	awaitGone(t, env.Karmada, rebalancer)
}
