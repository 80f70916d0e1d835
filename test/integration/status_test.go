package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// rollOut does what the controllers of a member would do to a Deployment: all of
// its replicas are there, and so many of them are ready.
func rollOut(t testing.TB, cluster string, template *appsv1.Deployment, ready int32) {
	t.Helper()
	object := deployment(template.Namespace, template.Name, 0)
	testenv.Eventually(t, "status in "+cluster, func(ctx context.Context) error {
		if err := member(cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		object.Status = appsv1.DeploymentStatus{
			ObservedGeneration: object.Generation, Replicas: *object.Spec.Replicas, UpdatedReplicas: *object.Spec.Replicas,
			ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: *object.Spec.Replicas - ready,
		}
		return member(cluster).Status().Update(ctx, object)
	})
}

// current tells how conditions of an object are not of its present generation.
func current(list []metav1.Condition, kind string, generation int64) error {
	found := meta.FindStatusCondition(list, kind)
	if found == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	return same("observed generation of "+kind, generation, found.ObservedGeneration)
}

func healths(want ...workv1alpha2.ResourceHealth) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []workv1alpha2.ResourceHealth
		for _, item := range b.Status.AggregatedStatus {
			got = append(got, item.Health)
		}
		return same("health", want, got)
	}
}

func TestStatusOfMembersIsSummedUpInTheTemplate(t *testing.T) {
	t.Parallel()
	template := deployment(env.Namespace(t), "web", 3)
	env.Create(t, policyFor(t, divided(map[string]int64{member1: 1, member2: 2}), template), template)
	inMember(t, member1, template, replicas(1))
	inMember(t, member2, template, replicas(2))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			condition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue, "Success", "Binding has been scheduled successfully."),
			condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "All works have been successfully applied"),
			current(b.Status.Conditions, workv1alpha2.Scheduled, b.Generation),
			current(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation),
			same("scheduler's generation", b.Generation, b.Status.SchedulerObservedGeneration))
	})

	rollOut(t, member1, template, 1)
	of := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		if len(w.Status.ManifestStatuses) != 1 || w.Status.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy {
			return fmt.Errorf("manifest statuses are %+v", w.Status.ManifestStatuses)
		}
		return current(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	want := workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: template.Namespace, Name: "web"}
	if err := same("identifier", want, of.Status.ManifestStatuses[0].Identifier); err != nil {
		t.Error(err)
	}
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		// member2 has not reported anything, so the rollout is not complete.
		if d.Status.ObservedGeneration == d.Generation {
			return errors.New("the present generation is said to be observed")
		}
		return same("available", int32(1), d.Status.AvailableReplicas)
	})

	rollOut(t, member2, template, 1)
	bound := await(t, env.Karmada, bindingOf(t, template), healths(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy))
	if err := same("clusters", []string{member1, member2}, []string{
		bound.Status.AggregatedStatus[0].ClusterName, bound.Status.AggregatedStatus[1].ClusterName,
	}); err != nil {
		t.Error(err)
	}
	stored := await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		got := d.Status
		got.Conditions = nil
		return same("status", appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 2, UnavailableReplicas: 1,
		}, got)
	})
	var reported struct{ Generation, ResourceTemplateGeneration int64 }
	if err := json.Unmarshal(bound.Status.AggregatedStatus[0].Status.Raw, &reported); err != nil {
		t.Fatal(err)
	}
	if reported.ResourceTemplateGeneration != stored.Generation {
		t.Errorf("the status of member1 is of generation %d of the template, which has %d", reported.ResourceTemplateGeneration, stored.Generation)
	}

	rollOut(t, member2, template, 2)
	await(t, env.Karmada, bound, healths(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceHealthy))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return same("ready", int32(3), d.Status.ReadyReplicas) })
}

func TestRolloutOfAChangeIsCompleteOnlyWhenEveryMemberHasIt(t *testing.T) {
	t.Parallel()
	template := deployment(env.Namespace(t), "web", 1)
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	rolledOut := func(d *appsv1.Deployment) error {
		// What kubectl rollout status looks at.
		if d.Status.ObservedGeneration < d.Generation {
			return fmt.Errorf("generation %d of %d is observed", d.Status.ObservedGeneration, d.Generation)
		}
		return same("available", int32(2), d.Status.AvailableReplicas)
	}
	for _, cluster := range []string{member1, member2} {
		inMember(t, cluster, template, exists)
		rollOut(t, cluster, template, 1)
	}
	await(t, env.Karmada, template, rolledOut)

	const image = "docker.io/library/nginx:1.28"
	hasImage := func(d *appsv1.Deployment) error {
		return same("image", image, d.Spec.Template.Spec.Containers[0].Image)
	}
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	inMember(t, member1, template, hasImage)
	inMember(t, member2, template, hasImage)
	rollOut(t, member1, template, 1)
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		var reported struct{ Generation, ObservedGeneration int64 }
		if err := json.Unmarshal(w.Status.ManifestStatuses[0].Status.Raw, &reported); err != nil {
			return err
		}
		if reported.ObservedGeneration < reported.Generation {
			return errors.New("the rollout in member1 is not reported")
		}
		return nil
	})
	testenv.Holds(t, "the rollout is not complete", quiet, func(ctx context.Context) error {
		stored := deployment(template.Namespace, template.Name, 0)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		if rolledOut(stored) == nil {
			return errors.New("it is said to be complete")
		}
		return nil
	})
	rollOut(t, member2, template, 1)
	await(t, env.Karmada, template, rolledOut)
}

func TestObjectWithoutAnyStatusIsHealthyOnceApplied(t *testing.T) {
	t.Parallel()
	template := configMap(env.Namespace(t), "plain")
	env.Create(t, policyFor(t, on(member1), template), template)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			healths(workv1alpha2.ResourceHealthy)(b),
			condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", ""))
	})
}

func TestLoadBalancersOfAllMembersAreListedInTheService(t *testing.T) {
	t.Parallel()
	template := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	for cluster, ip := range map[string]string{member1: "192.0.2.2", member2: "192.0.2.1"} {
		made := inMember(t, cluster, template, exists)
		made.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
		if err := member(cluster).Status().Update(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	await(t, env.Karmada, template, func(s *corev1.Service) error {
		var got []string
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			got = append(got, ingress.IP)
		}
		return same("addresses", []string{"192.0.2.1", "192.0.2.2"}, got)
	})
}

func TestStatusKeepsFlowingWhileDispatchingIsSuspended(t *testing.T) {
	t.Parallel()
	template := deployment(env.Namespace(t), "web", 1)
	policy := policyFor(t, on(member1), template)
	env.Create(t, policy, template)
	inMember(t, member1, template, exists)
	suspend(t, policy)
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})
	rollOut(t, member1, template, 1)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return same("ready", int32(1), d.Status.ReadyReplicas) })
}
