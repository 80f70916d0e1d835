package integration

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

func hpaFor(template *appsv1.Deployment, name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas:    9,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: template.Name},
		},
	}
}

func isMarked(want bool) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		return checkEqual("retains its replicas", want, d.Labels[workv1alpha2.RetainReplicasLabel] == "true")
	}
}

// scaleInMember does what an HPA and the controllers of a member do.
func scaleInMember(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, replicas int32) {
	t.Helper()
	object := deployment(template.Namespace, template.Name, 0)
	testenv.Update(t, memberClient(env, cluster), object, func(d *appsv1.Deployment) { *d.Spec.Replicas = replicas })
	simulateRollout(t, env, cluster, template, replicas)
}

func TestHPAsInMembersScaleTheTemplate(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "", func(s *controllermanager.Options) {
		s.Selected = []string{"*", "hpaScaleTargetMarker", "deploymentReplicasSyncer"}
	})
	template := deployment(env.Namespace(t), "web", 2)
	first, second := hpaFor(template, "first"), hpaFor(template, "second")
	policy := policyFor(t, dividedPlacement(map[string]int64{member1: 1, member2: 1}), template, first, second)
	env.Create(t, policy, template, first, second)
	await(t, env.Karmada, template, isMarked(true))
	for _, name := range []string{member1, member2} {
		awaitInMember(t, env, name, template, func(d *appsv1.Deployment) error { return errors.Join(isMarked(true)(d), hasReplicas(1)(d)) })
	}
	scaleInMember(t, env, member1, template, 4)
	scaleInMember(t, env, member2, template, 2)
	await(t, env.Karmada, template, hasReplicas(6))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("replicas", int32(6), b.Spec.Replicas)
	})
	awaitInMember(t, env, member1, template, hasReplicas(4))
	// The members decide: their replicas replace the replicas that a user sets.
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { *d.Spec.Replicas = 8 })
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		return errors.Join(checkEqual("generations", true, d.Generation > 3), hasReplicas(6)(d))
	})

	// The mark stays while another HPA scales the template, and goes with the last one.
	deleteObject(t, env.Karmada, first)
	awaitGone(t, env.Karmada, first)
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { delete(d.Labels, workv1alpha2.RetainReplicasLabel) })
	await(t, env.Karmada, template, isMarked(true))
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	deleteObject(t, env.Karmada, second)
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, env.Karmada, template, isMarked(false))
	awaitInMember(t, env, member1, template, isMarked(false))
}

// TestApplicationFailoverPassesOnStateOnce is the counterpart of the eviction by a taint in
// TestDirectPurgeStartsTheReplacementAfterRemovalOrDeclaredDead.
func TestApplicationFailoverPassesOnStateOnce(t *testing.T) {
	env := alone(t)
	const label = "test.karmada.io/replicas"
	withSettings(t, env, "StatefulFailoverInjection=true", nil)
	template := createHealthyDeployment(t, env, "stateful", placementOnOneOf(member1, member2), func(p *policyv1alpha1.PropagationPolicy) {
		setApplicationFailover(policyv1alpha1.PurgeModeDirectly, 2)(p)
		p.Spec.Failover.Application.StatePreservation = &policyv1alpha1.StatePreservation{
			Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: label, JSONPath: "{.readyReplicas}"}},
		}
	})
	hasState := func(want string) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error { return checkEqual("state", want, d.Labels[label]) }
	}
	simulateRollout(t, env, member1, template, 1)
	rb := await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), hasEvictionsFrom(member1)))
	task := rb.Spec.GracefulEvictionTasks[0]
	if err := errors.Join(checkEqual("clusters before", []string{member1}, task.ClustersBeforeFailover),
		checkEqual("state", map[string]string{label: "1"}, task.PreservedLabelState)); err != nil {
		t.Error(err)
	}
	awaitInMember(t, env, member2, template, hasState("1"))
	simulateRollout(t, env, member2, template, 2)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
	awaitInMember(t, env, member2, template, hasState(""))
}
