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

// withGates restarts the components with feature gates for one test, which must
// not run in parallel.
func withGates(t testing.TB, env *testenv.Env, gates string) {
	t.Helper()
	env.FeatureGates = gates
	restart(t, env)
	t.Cleanup(func() {
		env.FeatureGates = ""
		if err := env.RestartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("restarting the components without %s: %v", gates, err)
		}
	})
}

func TestPoliciesTakeTemplatesOverByPriority(t *testing.T) {
	env := alone(t)
	withGates(t, env, "PropagationPolicyPreemption=true")
	template := configMap(env.Namespace(t), "contested")
	global := clusterPolicyFor(t, env, on(member1), template)
	global.Spec.Priority = new(int32(100))
	env.Create(t, global, template)
	bound := propagated(t, env, template, member1)

	local := func(name string, priority int32, cluster string) *policyv1alpha1.PropagationPolicy {
		policy := policyFor(t, on(cluster), template)
		policy.Name = name
		policy.Spec.Priority, policy.Spec.Preemption = &priority, policyv1alpha1.PreemptAlways
		return policy
	}
	follows := func(name, cluster string) {
		t.Helper()
		await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap](name))
		after := await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
			return errors.Join(names(cluster)(b), claimedBy[client.Object](name)(b), same("binding", bound.UID, b.UID))
		})
		awaitRest(t, env, template, after)
		inMember(t, env, cluster, template, exists)
		await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap](name))
	}
	first := local("first", -5, member2)
	env.Create(t, first)
	follows("first", member2)
	awaitEvent(t, env, template, corev1.EventTypeNormal, policyv1alpha1.EventReasonPreemptPolicySucceed)

	// No priority lets a ClusterPropagationPolicy take from a PropagationPolicy.
	greedy := clusterPolicyFor(t, env, on(member1), template)
	greedy.Name += "greedy"
	cleanUp(t, env, greedy)
	greedy.Spec.Priority, greedy.Spec.Preemption = new(int32(1000)), policyv1alpha1.PreemptAlways
	env.Create(t, greedy)
	awaitRest(t, env, greedy, template, bound)
	follows("first", member2)

	second := local("second", 10, member1)
	env.Create(t, second)
	follows("second", member1)

	// One in between waits until the priority falls below its own.
	between := local("between", 5, member3)
	env.Create(t, between)
	awaitRest(t, env, between, template, bound)
	follows("second", member1)
	testenv.Update(t, env.Karmada, second, func(p *policyv1alpha1.PropagationPolicy) { *p.Spec.Priority = 2 })
	follows("between", member3)

	// A priority that falls while nobody looks is not missed.
	testenv.Update(t, env.Karmada, second, func(p *policyv1alpha1.PropagationPolicy) { *p.Spec.Priority = 3 })
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	testenv.Update(t, env.Karmada, between, func(p *policyv1alpha1.PropagationPolicy) { *p.Spec.Priority = 1 })
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	follows("second", member1)
	awaitRest(t, env, global, greedy, first, second, between, template, bound)
}
