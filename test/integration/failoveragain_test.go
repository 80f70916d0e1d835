package integration

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// A workload that all clusters get would otherwise be sent back in the moment in which
// it has left, to fail again.
func TestApplicationReturnsToWhereItFailedOnlyWhenItIsAnother(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "everywhere", 2)
	policy := policyFor(t, on(member1, member2), template)
	env.Create(t, policy, template)
	for _, name := range []string{member1, member2} {
		inMember(t, env, name, template, replicas(2))
		rollOut(t, env, name, template, 2)
	}
	bound := await(t, env.Karmada, bindingOf(t, template), both(names(member1, member2), healths(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceHealthy)))
	testenv.Update(t, env.Karmada, policy, leavingWhenIll(policyv1alpha1.PurgeModeGracefully, 1))
	rollOut(t, env, member1, template, 1)
	await(t, env.Karmada, bound, both(names(member2), leaves()))
	awaitGone(t, member(env, member1), template)

	takeTime(t, env, policy, bound)
	testenv.Holds(t, "where it is", quiet, func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
			return err
		}
		return names(member2)(bound)
	})
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image += "-fixed" })
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error { return same("clusters", 2, len(b.Spec.Clusters)) })
	inMember(t, env, member1, template, replicas(2))
}

// What is wrong with it is often what it is: a cluster that keeps the old copy must get
// the new one, for there is no other way to become healthy.
func TestApplicationThatFailedEverywhereIsMendedWhereItWas(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "broken", 2)
	policy := policyFor(t, on(member1), template)
	env.Create(t, policy, template)
	inMember(t, env, member1, template, replicas(2))
	bound := bindingOf(t, template)
	testenv.Update(t, env.Karmada, policy, leavingWhenIll(policyv1alpha1.PurgeModeGracefully, 1))
	rollOut(t, env, member1, template, 1)
	await(t, env.Karmada, bound, both(names(), leaves(member1)))
	takeTime(t, env, policy, bound)
	stays(t, env, member1, template)
	await(t, env.Karmada, bound, both(names(), leaves(member1)))

	const cure = "nginx:cured"
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = cure })
	inMember(t, env, member1, template, func(d *appsv1.Deployment) error { return same("image", cure, d.Spec.Template.Spec.Containers[0].Image) })
	await(t, env.Karmada, bound, both(names(member1), leaves()))
}

// takeTime has a workload leave nothing any more for being unhealthy.
func takeTime(t testing.TB, env *testenv.Env, policy *policyv1alpha1.PropagationPolicy, bound *workv1alpha2.ResourceBinding) {
	t.Helper()
	testenv.Update(t, env.Karmada, policy, leavingWhenIll(policyv1alpha1.PurgeModeGracefully, 300))
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return same("toleration", int32(300), *b.Spec.Failover.Application.DecisionConditions.TolerationSeconds)
	})
}
