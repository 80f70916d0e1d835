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

func TestPodThatIsRestartedInAMemberIsSeenToRunAgain(t *testing.T) {
	env := shared(t)
	template := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "lone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "docker.io/library/nginx:1.27"}}},
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	for _, step := range []struct {
		first, second corev1.ContainerState
		ready         []bool
	}{
		{runs, ends, []bool{true, false}},
		{ends, runs, []bool{false, true}},
		{runs, runs, []bool{true, true}},
	} {
		for cluster, state := range map[string]corev1.ContainerState{member1: step.first, member2: step.second} {
			reports(t, env, cluster, template, func(p *corev1.Pod) {
				p.Status.Phase = corev1.PodRunning
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", Ready: state.Running != nil, State: state}}
			})
		}
		await(t, env.Karmada, template, func(p *corev1.Pod) error {
			var got []bool
			for _, container := range p.Status.ContainerStatuses {
				got = append(got, container.Ready)
			}
			return errors.Join(same("phase", corev1.PodRunning, p.Status.Phase), same("ready", step.ready, got))
		})
	}
}

var (
	runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ends = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
)

func TestPodThatItsMemberCompletesStaysApplied(t *testing.T) {
	env := shared(t)
	template := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "lone"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "docker.io/library/nginx:1.27"}}},
	}
	// The admission of the member fills in what no update may take away.
	namespaceIn(t, env, member1, template.Namespace)
	limits := &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "defaults"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
		}}},
	}
	if err := member(env, member1).Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	env.Create(t, policyFor(t, on(member1), template), template)
	held := inMember(t, env, member1, template, exists)
	held.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "debugger", Image: "docker.io/library/busybox:1.36", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
	}}}
	if err := member(env, member1).SubResource("ephemeralcontainers").Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	// A change of the template makes a pass over all of it.
	testenv.Update(t, env.Karmada, template, func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "looked", "at") })
	inMember(t, env, member1, template, func(p *corev1.Pod) error {
		return errors.Join(same("mark", "at", p.Annotations["looked"]), same("debuggers", 1, len(p.Spec.EphemeralContainers)))
	})
	of := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return current(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	if err := condition(of.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue, "AppliedSuccessful", ""); err != nil {
		t.Error(err)
	}
}

// A class that a member has by default is filled in there, and cannot be removed.
func TestClaimWithTheStorageClassOfItsMemberStaysApplied(t *testing.T) {
	env := shared(t)
	template := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	env.Create(t, policyFor(t, on(member1), template), template)
	held := inMember(t, env, member1, template, exists)
	testenv.Update(t, member(env, member1), held, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName, c.Spec.VolumeName = new("standard"), "pv-1"
		c.Finalizers = nil // nothing in this member would ever remove them
	})
	testenv.Update(t, env.Karmada, template, func(c *corev1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, "looked", "at") })
	inMember(t, env, member1, template, func(c *corev1.PersistentVolumeClaim) error {
		return errors.Join(same("mark", "at", c.Annotations["looked"]), same("class", "standard", *c.Spec.StorageClassName))
	})
	of := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return current(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	if err := condition(of.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue, "AppliedSuccessful", ""); err != nil {
		t.Error(err)
	}
}
