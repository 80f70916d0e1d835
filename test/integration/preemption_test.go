package integration

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// withGates restarts the components with feature gates for one test, which must have the
// environment for itself.
func withGates(t testing.TB, env *testenv.Env, gates string) {
	t.Helper()
	env.FeatureGates = gates
	restartComponents(t, env)
	t.Cleanup(func() {
		env.FeatureGates = ""
		if err := env.RestartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("restarting the components without %s: %v", gates, err)
		}
	})
}

func TestPolicyPreemptionByPriority(t *testing.T) {
	env := alone(t)
	withGates(t, env, "PropagationPolicyPreemption=true")
	template := configMap(env.Namespace(t), "contested")
	global := clusterPolicyFor(t, env, placementOn(member1), template)
	global.Spec.Priority = new(int32(100))
	env.Create(t, global, template)
	rb := awaitPropagated(t, env, template, member1)

	newLocalPolicy := func(name string, priority int32, cluster string) *policyv1alpha1.PropagationPolicy {
		policy := policyFor(t, placementOn(cluster), template)
		policy.Name = name
		policy.Spec.Priority, policy.Spec.Preemption = &priority, policyv1alpha1.PreemptAlways
		return policy
	}
	awaitClaim := func(name, cluster string) {
		t.Helper()
		await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap](name))
		after := await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
			return errors.Join(hasClusters(cluster)(b), isClaimedBy[client.Object](name)(b), checkEqual("binding", rb.UID, b.UID))
		})
		awaitUnchanged(t, env, template, after)
		awaitInMember(t, env, cluster, template, exists)
		await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap](name))
	}
	first := newLocalPolicy("first", -5, member2)
	env.Create(t, first)
	awaitClaim("first", member2)
	awaitEvent(t, env, template, corev1.EventTypeNormal, policyv1alpha1.EventReasonPreemptPolicySucceed)

	// No priority lets a ClusterPropagationPolicy preempt a PropagationPolicy.
	highPriority := clusterPolicyFor(t, env, placementOn(member1), template)
	highPriority.Name += "greedy"
	cleanUp(t, env, highPriority)
	highPriority.Spec.Priority, highPriority.Spec.Preemption = new(int32(1000)), policyv1alpha1.PreemptAlways
	env.Create(t, highPriority)
	awaitUnchanged(t, env, highPriority, template, rb)
	awaitClaim("first", member2)

	second := newLocalPolicy("second", 10, member1)
	env.Create(t, second)
	awaitClaim("second", member1)

	// A policy with a priority between both waits until the priority of the claiming policy is
	// lower than its own.
	between := newLocalPolicy("between", 5, member3)
	env.Create(t, between)
	awaitUnchanged(t, env, between, template, rb)
	awaitClaim("second", member1)
	testenv.Update(t, env.Karmada, second, func(p *policyv1alpha1.PropagationPolicy) { *p.Spec.Priority = 2 })
	awaitClaim("between", member3)

	// The components notice a priority that was lowered while they were stopped.
	testenv.Update(t, env.Karmada, second, func(p *policyv1alpha1.PropagationPolicy) { *p.Spec.Priority = 3 })
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	testenv.Update(t, env.Karmada, between, func(p *policyv1alpha1.PropagationPolicy) { *p.Spec.Priority = 1 })
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitClaim("second", member1)
	awaitUnchanged(t, env, global, highPriority, first, second, between, template, rb)
}
