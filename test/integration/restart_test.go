package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/testenv"
)

// settledPeriod is how long a test checks that components with nothing left to do write nothing.
const settledPeriod = 2 * time.Second

// maxWriteDelay is more than the longest time that a component waits before a write. A binding
// whose Works were not checked since a start is reconciled after 3 seconds, and again 5 seconds
// later.
const maxWriteDelay = 6 * time.Second

// newObjectOfEachKind returns one object for each kind in which API servers set most defaults
// and values.
func newObjectOfEachKind(namespace string) []client.Object {
	labels := map[string]string{"app": "each"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "main", Image: "busybox",
				Env:       []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}},
			}},
		},
	}
	once := *pod.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	one, port := int32(1), networkingv1.ServiceBackendPort{Number: 80}
	objects := []client.Object{
		deployment(namespace, "each", 3),
		&appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pod, ServiceName: "each"}},
		&appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pod}},
		&batchv1.Job{Spec: batchv1.JobSpec{Template: once}},
		&batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once}}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.ServiceAccount{},
		&corev1.Secret{StringData: map[string]string{"key": "value"}},
		configMap(namespace, "each"),
		&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		&networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "each", Port: port},
		}}},
		&policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}},
		&autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: &one, MaxReplicas: 3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "each"},
		}},
		&rbacv1.Role{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}},
	}
	for _, object := range objects {
		object.SetNamespace(namespace)
		object.SetName("each")
	}
	return objects
}

func TestRestartWithNothingChangedWritesNothing(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	templates := newObjectOfEachKind(namespace)
	policy := policyFor(t, placementOn(member1, member2), templates...)
	env.Create(t, policy)
	env.Create(t, templates...)
	for _, template := range templates {
		await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
			return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
		})
	}
	for _, cluster := range []string{member1, member2} {
		template := deployment(namespace, "each", 3)
		simulateRollout(t, env, cluster, template, 3)
	}
	await(t, env.Karmada, deployment(namespace, "each", 3), func(d *appsv1.Deployment) error {
		return checkEqual("ready", int32(6), d.Status.ReadyReplicas)
	})
	// Restart once before the check. The resource summary of members is computed only every few
	// seconds and after a start, so it may be outdated before the restart.
	restartComponents(t, env)
	checkSilentStart(t, env)
	// The components work: a new template is propagated.
	marker := configMap(namespace, "marker")
	env.Create(t, policyFor(t, placementOn(member1), marker), marker)
	awaitInMember(t, env, member1, marker, exists)
}

// restartComponents stops the components and starts them again.
func restartComponents(t testing.TB, env *testenv.Env) {
	t.Helper()
	if err := env.RestartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// resumeDeletions resumes the deletions of a deleted namespace. The policy that suspended them is
// deleted too.
func resumeDeletions(ctx context.Context, env *testenv.Env, namespace string) error {
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := env.Karmada.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range bindings.Items {
		if bound := &bindings.Items[i]; bound.DeletionTimestamp != nil && bound.Spec.Suspension != nil {
			bound.Spec.Suspension = nil
			if err := env.Karmada.Update(ctx, bound); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitNoWrites waits until no API server has answered a write request for maxWriteDelay.
func awaitNoWrites(t testing.TB, env *testenv.Env, further ...*testenv.Member) {
	t.Helper()
	testenv.Eventually(t, "deletion of the namespaces of other tests", func(ctx context.Context) error {
		namespaces := &corev1.NamespaceList{}
		if err := env.Karmada.List(ctx, namespaces); err != nil {
			return err
		}
		for _, namespace := range namespaces.Items {
			if namespace.Status.Phase == corev1.NamespaceTerminating {
				if err := resumeDeletions(ctx, env, namespace.Name); err != nil {
					return err
				}
				return fmt.Errorf("%s is being deleted: %+v", namespace.Name, namespace.Status.Conditions)
			}
		}
		return nil
	})
	// Other tests register a member under two names. The Works of both clusters then repair the same
	// Namespaces, and report the end of this drift conflict a while after the second name is gone.
	testenv.Eventually(t, "end of the drift conflicts of other tests", func(ctx context.Context) error {
		works := &workv1alpha1.WorkList{}
		if err := env.Karmada.List(ctx, works); err != nil {
			return err
		}
		for _, work := range works.Items {
			if conditions.HasStatus(work.Status.Conditions, workv1alpha1.WorkDriftConflict, metav1.ConditionTrue) {
				return fmt.Errorf("Work %s/%s has a drift conflict", work.Namespace, work.Name)
			}
		}
		return nil
	})
	last, since := countWrites(t, env, further...), clock.now()
	testenv.Eventually(t, "end of all writes", func(context.Context) error {
		now := countWrites(t, env, further...)
		if err := diffWrites(last, now); err != nil {
			last, since = now, clock.now()
			return err
		}
		if idle := clock.since(since); idle < maxWriteDelay {
			return fmt.Errorf("the last write was %s ago", idle)
		}
		return nil
	})
}

// countWrites returns the numbers of write requests that the API servers of the environment and
// of further members have processed.
func countWrites(t testing.TB, env *testenv.Env, further ...*testenv.Member) map[string]int {
	t.Helper()
	counts, err := env.Writes(further...)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// checkSilentStart checks that the components write nothing after a start.
func checkSilentStart(t testing.TB, env *testenv.Env) {
	t.Helper()
	retryAfterStall(t, "no writes after a start", func() error {
		awaitNoWrites(t, env)
		before := countWrites(t, env)
		restartComponents(t, env)
		return checkNoWrites(t, env, before)
	})
}

// checkNoWrites checks for maxWriteDelay that nothing is written. Its error lists the latest
// events, which show the writer.
func checkNoWrites(t testing.TB, env *testenv.Env, before map[string]int, further ...*testenv.Member) error {
	t.Helper()
	return testenv.Held(t.Context(), maxWriteDelay, func(ctx context.Context) error {
		err := diffWrites(before, countWrites(t, env, further...))
		if err == nil {
			return nil
		}
		return fmt.Errorf("%w; the latest events: %s", err, strings.Join(latestEvents(ctx, env), "; "))
	})
}

// latestEvents returns the events of the last seconds of the control plane and of its members.
func latestEvents(ctx context.Context, env *testenv.Env) []string {
	clusterClients := map[string]client.Client{"karmada": env.Karmada}
	for name := range env.Members {
		clusterClients[name] = memberClient(env, name)
	}
	var latest []string
	for name, clusterClient := range clusterClients {
		events := &corev1.EventList{}
		if err := clusterClient.List(ctx, events); err != nil {
			latest = append(latest, err.Error())
		}
		for i := range events.Items {
			if e := &events.Items[i]; time.Since(e.CreationTimestamp.Time) < 2*maxWriteDelay {
				latest = append(latest, fmt.Sprintf("%s: %s %s/%s %s %s", name, e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.Reason, e.Message))
			}
		}
	}
	return latest
}

// diffWrites returns an error that lists the writes between both counts.
func diffWrites(before, after map[string]int) error {
	var more []string
	for what, number := range after {
		if number != before[what] {
			more = append(more, fmt.Sprintf("%d of %s", number-before[what], what))
		}
	}
	if len(more) > 0 {
		return fmt.Errorf("writes: %s", strings.Join(more, "; "))
	}
	return nil
}

func TestStatusOfSuspendedWorkIsCollectedAfterARestart(t *testing.T) {
	env := alone(t)
	template := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "held"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}}},
	}
	policy := policyFor(t, placementOn(member1), template)
	env.Create(t, policy, template)
	await(t, env.Karmada, bindingOf(t, template), isFullyApplied)
	suspendDispatching(t, env, policy)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})
	restartComponents(t, env)
	testenv.Eventually(t, "status in the member", func(ctx context.Context) error {
		memberObject := &policyv1.PodDisruptionBudget{}
		if err := memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(template), memberObject); err != nil {
			return err
		}
		memberObject.Status.ExpectedPods = 7
		return memberClient(env, member1).Status().Update(ctx, memberObject)
	})
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		if len(w.Status.ManifestStatuses) == 0 || w.Status.ManifestStatuses[0].Status == nil {
			return errors.New("there is no status")
		}
		if !strings.Contains(string(w.Status.ManifestStatuses[0].Status.Raw), `"expectedPods":7`) {
			return fmt.Errorf("status %s", w.Status.ManifestStatuses[0].Status.Raw)
		}
		return nil
	})
}
