package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// deploymentCondition is nil when there is none of the type.
func deploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

// isAvailable reports what kubectl wait --for=condition=Available waits for.
func isAvailable(d *appsv1.Deployment) error {
	found := deploymentCondition(d, appsv1.DeploymentAvailable)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return fmt.Errorf("generation %d of %d is observed", d.Status.ObservedGeneration, d.Generation)
	case found == nil || found.Status != corev1.ConditionTrue:
		return fmt.Errorf("conditions are %+v", d.Status.Conditions)
	default:
		return nil
	}
}

// isNotAvailable checks that a template says why it is not available.
func isNotAvailable(causes ...string) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		found := deploymentCondition(d, appsv1.DeploymentAvailable)
		if found == nil || found.Status != corev1.ConditionFalse {
			return fmt.Errorf("conditions are %+v", d.Status.Conditions)
		}
		return mentions(found.Message, causes...)
	}
}

// mentions reports which of some texts a message does not contain.
func mentions(message string, texts ...string) error {
	for _, text := range texts {
		if !strings.Contains(message, text) {
			return fmt.Errorf("%q does not contain %q", message, text)
		}
	}
	return nil
}

// awaitWarning waits for an event on an object that contains some texts.
func awaitWarning(t testing.TB, env *testenv.Env, on client.Object, reason string, texts ...string) {
	t.Helper()
	testenv.Eventually(t, "event "+reason, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := env.Karmada.List(ctx, events, client.InNamespace(on.GetNamespace())); err != nil {
			return err
		}
		wrong := errors.New("there is none")
		for _, event := range events.Items {
			if event.InvolvedObject.Name != on.GetName() || event.Type != corev1.EventTypeWarning || event.Reason != reason {
				continue
			}
			if wrong = mentions(event.Message, texts...); wrong == nil {
				return nil
			}
		}
		return wrong
	})
}

// runsAs writes the status that the controllers of a member write when all is well,
// but for the conditions that are given.
func runsAs(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32, other ...appsv1.DeploymentCondition) {
	t.Helper()
	reports(t, env, cluster, deployment(template.Namespace, template.Name, 0), func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: ready, UpdatedReplicas: ready, ReadyReplicas: ready, AvailableReplicas: ready,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		for _, c := range other {
			if found := deploymentCondition(d, c.Type); found != nil {
				*found = c
				continue
			}
			d.Status.Conditions = append(d.Status.Conditions, c)
		}
	})
}

func TestATemplateIsAvailableOnlyWhenEveryClusterHasIt(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	for _, cluster := range []string{member1, member2} {
		namespaceIn(t, env, cluster, template.Namespace)
	}
	foreign := deployment(template.Namespace, template.Name, 1)
	if err := member(env, member2).Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	inMember(t, env, member1, template, exists)
	runsAs(t, env, member1, template, 1)

	const cause = "already exists in the cluster"
	awaitWarning(t, env, template, "SyncFailed", member2, cause)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if err := condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", ""); err != nil {
			return err
		}
		return mentions(meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied).Message, member2+": ", cause)
	})
	await(t, env.Karmada, template, isNotAvailable(member2+": not applied", cause))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		if d.Status.ObservedGeneration >= d.Generation {
			return errors.New("the present generation is said to be observed")
		}
		return same("ready", int32(1), d.Status.ReadyReplicas)
	})

	deleteObject(t, member(env, member2), foreign)
	await(t, env.Karmada, bindingOf(t, template), fullyApplied)
	runsAs(t, env, member2, template, 1)
	await(t, env.Karmada, template, isAvailable)
}

func TestWhatKeepsPodsFromRunningInAMemberReachesTheTemplate(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	inMember(t, env, member1, template, exists)
	inMember(t, env, member2, template, exists)
	runsAs(t, env, member1, template, 1)
	const cause = `pods "web-x" is forbidden: exceeded quota: small`
	runsAs(t, env, member2, template, 0,
		appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"},
		appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: cause})

	bound := await(t, env.Karmada, bindingOf(t, template), healths(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy))
	awaitWarning(t, env, template, workv1alpha2.EventReasonWorkloadUnhealthy, member2, cause)
	awaitWarning(t, env, bound, workv1alpha2.EventReasonWorkloadUnhealthy, member2, cause)
	await(t, env.Karmada, template, isNotAvailable(member2))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		found := deploymentCondition(d, appsv1.DeploymentReplicaFailure)
		if found == nil {
			return fmt.Errorf("conditions are %+v", d.Status.Conditions)
		}
		return mentions(found.Message, member2, cause)
	})

	runsAs(t, env, member2, template, 1)
	await(t, env.Karmada, template, isAvailable)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		if found := deploymentCondition(d, appsv1.DeploymentReplicaFailure); found != nil {
			return fmt.Errorf("the failure is over and said to be there: %+v", found)
		}
		return nil
	})
}

// It takes a while: most workloads that are not healthy are on their way, so their
// Pods are not read at once.
func TestPodsThatNoNodeTakesReachTheTemplate(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	env.Create(t, policyFor(t, on(member1), template), template)
	inMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "web-1", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec,
		}
		return member(env, member1).Create(t.Context(), pod)
	})
	const cause = "0/3 nodes are available: 3 Insufficient cpu"
	reports(t, env, member1, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "web-1"}}, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: cause,
		}}
	})
	runsAs(t, env, member1, template, 0,
		appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"})

	awaitWarning(t, env, template, workv1alpha2.EventReasonWorkloadUnhealthy, member1, "Unschedulable", cause)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		found := deploymentCondition(d, workv1alpha2.MemberConditionPodFailure)
		if found == nil {
			return fmt.Errorf("conditions are %+v", d.Status.Conditions)
		}
		return errors.Join(same("reason", "Unschedulable", found.Reason), mentions(found.Message, member1, cause))
	})
	await(t, env.Karmada, bindingOf(t, template), healths(workv1alpha2.ResourceUnhealthy))

	runsAs(t, env, member1, template, 1)
	await(t, env.Karmada, template, isAvailable)
}
