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

// findDeploymentCondition returns the condition of a type, or nil.
func findDeploymentCondition(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range d.Status.Conditions {
		if d.Status.Conditions[i].Type == kind {
			return &d.Status.Conditions[i]
		}
	}
	return nil
}

// isAvailable checks what kubectl wait --for=condition=Available waits for.
func isAvailable(d *appsv1.Deployment) error {
	found := findDeploymentCondition(d, appsv1.DeploymentAvailable)
	switch {
	case d.Status.ObservedGeneration < d.Generation:
		return fmt.Errorf("observed generation is %d, want %d", d.Status.ObservedGeneration, d.Generation)
	case found == nil || found.Status != corev1.ConditionTrue:
		return fmt.Errorf("conditions are %+v", d.Status.Conditions)
	default:
		return nil
	}
}

// isNotAvailable checks that the condition Available is False and its message contains the causes.
func isNotAvailable(causes ...string) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		found := findDeploymentCondition(d, appsv1.DeploymentAvailable)
		if found == nil || found.Status != corev1.ConditionFalse {
			return fmt.Errorf("conditions are %+v", d.Status.Conditions)
		}
		return checkContains(found.Message, causes...)
	}
}

// checkContains returns an error if a message does not contain one of the texts.
func checkContains(message string, texts ...string) error {
	for _, text := range texts {
		if !strings.Contains(message, text) {
			return fmt.Errorf("%q does not contain %q", message, text)
		}
	}
	return nil
}

// awaitWarningEvent waits for a Warning event about an object whose message contains the texts.
func awaitWarningEvent(t testing.TB, env *testenv.Env, object client.Object, reason string, texts ...string) {
	t.Helper()
	testenv.Eventually(t, "event "+reason, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := env.Karmada.List(ctx, events, client.InNamespace(object.GetNamespace())); err != nil {
			return err
		}
		lastErr := errors.New("there is no such event")
		for _, event := range events.Items {
			if event.InvolvedObject.Name != object.GetName() || event.Type != corev1.EventTypeWarning || event.Reason != reason {
				continue
			}
			if lastErr = checkContains(event.Message, texts...); lastErr == nil {
				return nil
			}
		}
		return lastErr
	})
}

// setMemberDeploymentStatus writes the status that a member's controllers write for an available
// Deployment. The given conditions replace or extend the conditions of this status.
func setMemberDeploymentStatus(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32, conditions ...appsv1.DeploymentCondition) {
	t.Helper()
	setMemberStatus(t, env, cluster, deployment(template.Namespace, template.Name, 0), func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: ready, UpdatedReplicas: ready, ReadyReplicas: ready, AvailableReplicas: ready,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		for _, c := range conditions {
			if found := findDeploymentCondition(d, c.Type); found != nil {
				*found = c
				continue
			}
			d.Status.Conditions = append(d.Status.Conditions, c)
		}
	})
}

func TestTemplateIsAvailableOnlyWhenAppliedInAllClusters(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	for _, cluster := range []string{member1, member2} {
		awaitNamespace(t, env, cluster, template.Namespace)
	}
	foreign := deployment(template.Namespace, template.Name, 1)
	if err := memberClient(env, member2).Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	awaitInMember(t, env, member1, template, exists)
	setMemberDeploymentStatus(t, env, member1, template, 1)

	const cause = "already exists in the cluster"
	awaitWarningEvent(t, env, template, "SyncFailed", member2, cause)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if err := checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", ""); err != nil {
			return err
		}
		return checkContains(meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied).Message, member2+": ", cause)
	})
	await(t, env.Karmada, template, isNotAvailable(member2+": not applied", cause))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		if d.Status.ObservedGeneration >= d.Generation {
			return errors.New("the current generation is reported as observed")
		}
		return checkEqual("ready", int32(1), d.Status.ReadyReplicas)
	})

	deleteObject(t, memberClient(env, member2), foreign)
	await(t, env.Karmada, bindingOf(t, template), isFullyApplied)
	setMemberDeploymentStatus(t, env, member2, template, 1)
	await(t, env.Karmada, template, isAvailable)
}

func TestReplicaFailureInMemberIsReportedOnTemplate(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	awaitInMember(t, env, member1, template, exists)
	awaitInMember(t, env, member2, template, exists)
	setMemberDeploymentStatus(t, env, member1, template, 1)
	const cause = `pods "web-x" is forbidden: exceeded quota: small`
	setMemberDeploymentStatus(t, env, member2, template, 0,
		appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"},
		appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: cause})

	bound := await(t, env.Karmada, bindingOf(t, template), hasHealth(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy))
	awaitWarningEvent(t, env, template, workv1alpha2.EventReasonWorkloadUnhealthy, member2, cause)
	awaitWarningEvent(t, env, bound, workv1alpha2.EventReasonWorkloadUnhealthy, member2, cause)
	await(t, env.Karmada, template, isNotAvailable(member2))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		found := findDeploymentCondition(d, appsv1.DeploymentReplicaFailure)
		if found == nil {
			return fmt.Errorf("conditions are %+v", d.Status.Conditions)
		}
		return checkContains(found.Message, member2, cause)
	})

	setMemberDeploymentStatus(t, env, member2, template, 1)
	await(t, env.Karmada, template, isAvailable)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		if found := findDeploymentCondition(d, appsv1.DeploymentReplicaFailure); found != nil {
			return fmt.Errorf("the condition of the failure is still set: %+v", found)
		}
		return nil
	})
}

// This test takes long: Karmada reads the Pods of an unhealthy workload only after a delay,
// because most unhealthy workloads are still starting.
func TestUnschedulablePodsAreReportedOnTemplate(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: "web-1", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec,
		}
		return memberClient(env, member1).Create(t.Context(), pod)
	})
	const cause = "0/3 nodes are available: 3 Insufficient cpu"
	setMemberStatus(t, env, member1, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "web-1"}}, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: cause,
		}}
	})
	setMemberDeploymentStatus(t, env, member1, template, 0,
		appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"})

	awaitWarningEvent(t, env, template, workv1alpha2.EventReasonWorkloadUnhealthy, member1, "Unschedulable", cause)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		found := findDeploymentCondition(d, workv1alpha2.MemberConditionPodFailure)
		if found == nil {
			return fmt.Errorf("conditions are %+v", d.Status.Conditions)
		}
		return errors.Join(checkEqual("reason", "Unschedulable", found.Reason), checkContains(found.Message, member1, cause))
	})
	await(t, env.Karmada, bindingOf(t, template), hasHealth(workv1alpha2.ResourceUnhealthy))

	setMemberDeploymentStatus(t, env, member1, template, 1)
	await(t, env.Karmada, template, isAvailable)
}
