package integration

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

func TestPodStatusFollowsARestartInTheMember(t *testing.T) {
	env := shared(t)
	template := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "lone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "docker.io/library/nginx:1.27"}}},
	}
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	for _, step := range []struct {
		first, second corev1.ContainerState
		ready         []bool
	}{
		{runningState, terminatedState, []bool{true, false}},
		{terminatedState, runningState, []bool{false, true}},
		{runningState, runningState, []bool{true, true}},
	} {
		for cluster, state := range map[string]corev1.ContainerState{member1: step.first, member2: step.second} {
			setMemberStatus(t, env, cluster, template, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", Ready: state.Running != nil, State: state}}
			})
		}
		await(t, env.Karmada, template, func(p *corev1.Pod) error {
			var got []bool
			for _, container := range p.Status.ContainerStatuses {
				got = append(got, container.Ready)
			}
			return errors.Join(checkEqual("phase", corev1.PodRunning, p.Status.Phase), checkEqual("ready", step.ready, got))
		})
	}
}

var (
	runningState    = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	terminatedState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
)

func TestPodDefaultedByTheMemberStaysApplied(t *testing.T) {
	env := shared(t)
	template := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "lone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "docker.io/library/nginx:1.27"}}},
	}
	// The admission of the member sets defaults that no update may remove.
	awaitNamespace(t, env, member1, template.Namespace)
	limits := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "defaults"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
		}}},
	}
	if err := memberClient(env, member1).Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	memberPod := awaitInMember(t, env, member1, template, exists)
	memberPod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debugger", Image: "docker.io/library/busybox:1.36", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
	}}}
	if err := memberClient(env, member1).SubResource("ephemeralcontainers").Update(t.Context(), memberPod); err != nil {
		t.Fatal(err)
	}
	// A change of the template makes Karmada apply the whole object again.
	testenv.Update(t, env.Karmada, template, func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "looked", "at") })
	awaitInMember(t, env, member1, template, func(p *corev1.Pod) error {
		return errors.Join(checkEqual("annotation", "at", p.Annotations["looked"]), checkEqual("ephemeral containers", 1, len(p.Spec.EphemeralContainers)))
	})
	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkObservedGeneration(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	if err := checkCondition(memberWork.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue, "AppliedSuccessful", ""); err != nil {
		t.Error(err)
	}
}

// The member sets its default storage class in the claim, and no update can remove this field.
func TestPersistentVolumeClaimDefaultedByTheMemberStaysApplied(t *testing.T) {
	env := shared(t)
	template := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	memberClaim := awaitInMember(t, env, member1, template, exists)
	testenv.Update(t, memberClient(env, member1), memberClaim, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName, c.Spec.VolumeName = new("standard"), "pv-1"
		c.Finalizers = nil // no controller of this member would remove them
	})
	testenv.Update(t, env.Karmada, template, func(c *corev1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, "looked", "at") })
	awaitInMember(t, env, member1, template, func(c *corev1.PersistentVolumeClaim) error {
		return errors.Join(checkEqual("annotation", "at", c.Annotations["looked"]), checkEqual("storage class", "standard", *c.Spec.StorageClassName))
	})
	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkObservedGeneration(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	if err := checkCondition(memberWork.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue, "AppliedSuccessful", ""); err != nil {
		t.Error(err)
	}
}
