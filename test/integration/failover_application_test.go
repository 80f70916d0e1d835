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

// A workload that is placed on all clusters must not return to the cluster that it just left:
// it would fail there again.
func TestFailedApplicationReturnsToAClusterOnlyAfterAChange(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "everywhere", 2)
	policy := policyFor(t, placementOn(member1, member2), template)
	env.Create(t, policy, template)
	for _, name := range []string{member1, member2} {
		awaitInMember(t, env, name, template, hasReplicas(2))
		simulateRollout(t, env, name, template, 2)
	}
	rb := await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member1, member2), hasHealth(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceHealthy)))
	testenv.Update(t, env.Karmada, policy, setApplicationFailover(policyv1alpha1.PurgeModeGracefully, 1))
	simulateRollout(t, env, member1, template, 1)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
	awaitGone(t, memberClient(env, member1), template)

	raiseFailoverToleration(t, env, policy, rb)
	testenv.Holds(t, "the clusters of the workload", quietPeriod, func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(rb), rb); err != nil {
			return err
		}
		return hasClusters(member2)(rb)
	})
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image += "-fixed" })
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error { return checkEqual("clusters", 2, len(b.Spec.Clusters)) })
	awaitInMember(t, env, member1, template, hasReplicas(2))
}

// The cause of the failure is often in the template. A cluster that keeps the old copy must get
// the changed template, because the workload cannot become healthy in another way.
func TestFixOfAnApplicationThatFailedEverywhereReachesItsOldCluster(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "broken", 2)
	policy := policyFor(t, placementOn(member1), template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, hasReplicas(2))
	rb := bindingOf(t, template)
	testenv.Update(t, env.Karmada, policy, setApplicationFailover(policyv1alpha1.PurgeModeGracefully, 1))
	simulateRollout(t, env, member1, template, 1)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(), hasEvictionsFrom(member1)))
	raiseFailoverToleration(t, env, policy, rb)
	checkObjectKept(t, env, member1, template)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(), hasEvictionsFrom(member1)))

	const fixedImage = "nginx:cured"
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = fixedImage })
	awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		return checkEqual("image", fixedImage, d.Spec.Template.Spec.Containers[0].Image)
	})
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member1), hasEvictionsFrom()))
}

// raiseFailoverToleration raises the toleration to 300 s, so that the workload is not evicted
// again.
func raiseFailoverToleration(t testing.TB, env *testenv.Env, policy *policyv1alpha1.PropagationPolicy, rb *workv1alpha2.ResourceBinding) {
	t.Helper()
	testenv.Update(t, env.Karmada, policy, setApplicationFailover(policyv1alpha1.PurgeModeGracefully, 300))
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("toleration", int32(300), *b.Spec.Failover.Application.DecisionConditions.TolerationSeconds)
	})
}
