package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// rollOut does what the controllers of a member would do to a Deployment: all of
// its replicas are there, and so many of them are ready.
func rollOut(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32) {
	t.Helper()
	testenv.Eventually(t, "status in "+cluster, func(ctx context.Context) error {
		return rolledOut(ctx, env, cluster, template, ready)
	})
}

// rollsOut rolls an object out as soon as a member has it, until the test ends: for
// what is not long in a member unless it is well there.
func rollsOut(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return rolledOut(ctx, env, cluster, template, ready) == nil, nil
		})
	}()
}

// rolledOut writes the status of an object in a member, of which so many are ready.
func rolledOut(ctx context.Context, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32) error {
	object := deployment(template.Namespace, template.Name, 0)
	if err := member(env, cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	object.Status = appsv1.DeploymentStatus{
		ObservedGeneration: object.Generation, Replicas: *object.Spec.Replicas, UpdatedReplicas: *object.Spec.Replicas,
		ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: *object.Spec.Replicas - ready,
	}
	return member(env, cluster).Status().Update(ctx, object)
}

// reports writes the status of an object as soon as a member has it, again on a
// conflict.
func reports[T client.Object](t testing.TB, env *testenv.Env, cluster string, template T, change func(T)) {
	t.Helper()
	testenv.Eventually(t, "status in "+cluster, func(ctx context.Context) error {
		object, ok := empty(template).(T)
		if !ok {
			return fmt.Errorf("%T does not copy itself", template)
		}
		if err := member(env, cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return member(env, cluster).Status().Update(ctx, object)
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
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 3)
	env.Create(t, policyFor(t, divided(map[string]int64{member1: 1, member2: 2}), template), template)
	inMember(t, env, member1, template, replicas(1))
	inMember(t, env, member2, template, replicas(2))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			condition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue, "Success", "Binding has been scheduled successfully."),
			condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "All works have been successfully applied"),
			current(b.Status.Conditions, workv1alpha2.Scheduled, b.Generation),
			current(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation),
			same("scheduler's generation", b.Generation, b.Status.SchedulerObservedGeneration))
	})

	rollOut(t, env, member1, template, 1)
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

	rollOut(t, env, member2, template, 1)
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

	rollOut(t, env, member2, template, 2)
	await(t, env.Karmada, bound, healths(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceHealthy))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return same("ready", int32(3), d.Status.ReadyReplicas) })
}

func TestRolloutOfAChangeIsCompleteOnlyWhenEveryMemberHasIt(t *testing.T) {
	env := shared(t)
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
		inMember(t, env, cluster, template, exists)
		rollOut(t, env, cluster, template, 1)
	}
	await(t, env.Karmada, template, rolledOut)

	const image = "docker.io/library/nginx:1.28"
	hasImage := func(d *appsv1.Deployment) error {
		return same("image", image, d.Spec.Template.Spec.Containers[0].Image)
	}
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	inMember(t, env, member1, template, hasImage)
	inMember(t, env, member2, template, hasImage)
	rollOut(t, env, member1, template, 1)
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
	rollOut(t, env, member2, template, 1)
	await(t, env.Karmada, template, rolledOut)
}

func TestObjectWithoutAnyStatusIsHealthyOnceApplied(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "plain")
	env.Create(t, policyFor(t, on(member1), template), template)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			healths(workv1alpha2.ResourceHealthy)(b),
			condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", ""))
	})
}

func TestLoadBalancersOfAllMembersAreListedInTheService(t *testing.T) {
	env := shared(t)
	template := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	for cluster, ip := range map[string]string{member1: "192.0.2.2", member2: "192.0.2.1"} {
		reports(t, env, cluster, template, func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}} })
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
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	policy := policyFor(t, on(member1), template)
	env.Create(t, policy, template)
	inMember(t, env, member1, template, exists)
	suspend(t, env, policy)
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})
	rollOut(t, env, member1, template, 1)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return same("ready", int32(1), d.Status.ReadyReplicas) })
}

// fullyApplied tells how a binding does not say that its present generation is
// where it has to be.
func fullyApplied(b *workv1alpha2.ResourceBinding) error {
	return errors.Join(
		condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", ""),
		current(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation))
}

// Who waits for the condition, as kubectl wait does, finds what was waited for.
func TestMembersHaveWhatIsSaidToBeFullyApplied(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "changing")
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	bound := await(t, env.Karmada, bindingOf(t, template), fullyApplied)
	for _, color := range []string{"red", "green", "yellow", "white"} {
		testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = color })
		before := bound.Generation
		bound = await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
			if b.Generation == before {
				return errors.New("it does not know of the change")
			}
			return fullyApplied(b)
		})
		for _, cluster := range []string{member1, member2} {
			held := configMap(template.Namespace, template.Name)
			if err := member(env, cluster).Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil {
				t.Fatal(err)
			}
			if err := hasColor(color)(held); err != nil {
				t.Errorf("%s: %v", cluster, err)
			}
		}
	}
}

func TestClustersThatCannotBeServedAreNamed(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "blocked")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "impossible"},
		Spec:       overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, setting(t, "/spec/no/such/path", "x", member2)),
	}
	env.Create(t, override, policyFor(t, on(member1, member2), template), template)
	inMember(t, env, member1, template, exists)
	bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if err := condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", ""); err != nil {
			return err
		}
		message := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied).Message
		if !strings.HasPrefix(message, workv1alpha2.FullyAppliedFailedMessage+": "+member2+": ") {
			return fmt.Errorf("the message is %q", message)
		}
		if len(b.Status.AggregatedStatus) != 2 || b.Status.AggregatedStatus[1].Applied || b.Status.AggregatedStatus[1].AppliedMessage == "" {
			return fmt.Errorf("aggregated status is %+v", b.Status.AggregatedStatus)
		}
		return nil
	})
	deleteObject(t, env.Karmada, override)
	await(t, env.Karmada, bound, fullyApplied)
	inMember(t, env, member2, template, exists)
}

// placeByHand makes a template that no scheduler places, and places it.
func placeByHand(t testing.TB, env *testenv.Env, template client.Object, cluster string) *workv1alpha2.ResourceBinding {
	t.Helper()
	policy := policyFor(t, on(cluster), template)
	policy.Spec.SchedulerName = "nobody"
	env.Create(t, policy, template)
	bound := await(t, env.Karmada, bindingOf(t, template), exists)
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster}}
	})
	return bound
}

// It runs before those that run in parallel, which count the clusters, and wait for
// namespaces to leave all of them.
func TestClusterThatCannotBeReachedIsNamedWithItsTime(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	lost := clusterNamed("lost-" + namespace)
	lost.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1", InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: namespace, Name: "credentials"},
	}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"}, StringData: map[string]string{"token": "x"}}
	cleanUp(t, env, lost)
	env.Create(t, credentials, lost)
	since := await(t, env.Karmada, lost, func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionFalse, "ClusterNotReachable", "")
	})
	template := configMap(namespace, "stranded")
	bound := placeByHand(t, env, template, lost.Name)
	at := meta.FindStatusCondition(since.Status.Conditions, clusterv1alpha1.ClusterConditionReady).LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z")
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		want := []workv1alpha2.AggregatedStatusItem{{
			ClusterName: lost.Name, AppliedMessage: fmt.Sprintf("cluster %s is not ready since %s", lost.Name, at), Health: workv1alpha2.ResourceUnknown,
		}}
		return same("aggregated status", want, b.Status.AggregatedStatus)
	})
	deleteObject(t, env.Karmada, template)
	leave(t, env, lost.Name)
}

func TestObjectThatIsGoneFromAMemberHasNoStatus(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	policy := policyFor(t, on(member1), template)
	env.Create(t, policy, template)
	inMember(t, env, member1, template, exists)
	rollOut(t, env, member1, template, 1)
	bound := await(t, env.Karmada, bindingOf(t, template), healths(workv1alpha2.ResourceHealthy))
	suspend(t, env, policy)
	of := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})

	deleteObject(t, member(env, member1), deployment(template.Namespace, template.Name, 1))
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error { return same("manifest statuses", 0, len(w.Status.ManifestStatuses)) })
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		want := []workv1alpha2.AggregatedStatusItem{{ClusterName: member1, Applied: true, Health: workv1alpha2.ResourceUnknown}}
		return same("aggregated status", want, b.Status.AggregatedStatus)
	})
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return same("ready", int32(0), d.Status.ReadyReplicas) })
}

func TestEveryObjectOfAWorkHasItsStatus(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	namespaceIn(t, env, member1, namespace)
	byHand := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(member1), Name: namespace}}
	for _, manifest := range []client.Object{configMap(namespace, "one"), deployment(namespace, "two", 1), configMap(namespace, "three")} {
		of := selectorOf(t, manifest)
		// These lead from the member back to the Work.
		manifest.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
		manifest.SetAnnotations(map[string]string{
			workv1alpha1.WorkNamespaceAnnotation: byHand.Namespace, workv1alpha1.WorkNameAnnotation: byHand.Name,
		})
		manifest.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(of.APIVersion, of.Kind))
		raw, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		byHand.Spec.Workload.Manifests = append(byHand.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	cleanUp(t, env, byHand)
	env.Create(t, byHand)
	inMember(t, env, member1, deployment(namespace, "two", 1), exists)
	rollOut(t, env, member1, deployment(namespace, "two", 1), 1)
	await(t, env.Karmada, byHand, func(w *workv1alpha1.Work) error {
		var got []string
		for _, status := range w.Status.ManifestStatuses {
			got = append(got, fmt.Sprintf("%d %s %s %s", status.Identifier.Ordinal, status.Identifier.Kind, status.Identifier.Name, status.Health))
		}
		return same("manifest statuses", []string{"0 ConfigMap one Healthy", "1 Deployment two Healthy", "2 ConfigMap three Healthy"}, got)
	})
	deleteObject(t, env.Karmada, byHand)
	awaitGone(t, env.Karmada, byHand)
}

func TestJobFailsWhenItFailsInOneMember(t *testing.T) {
	env := shared(t)
	template := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "once"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}}},
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	now := metav1.Now()
	ended := func(kinds ...batchv1.JobConditionType) (conditions []batchv1.JobCondition) {
		for _, kind := range kinds {
			conditions = append(conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		return conditions
	}
	reports(t, env, member1, template, func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: ended(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)}
	})
	// The status of a Job that has failed is final: what comes later does not count.
	await(t, env.Karmada, template, func(j *batchv1.Job) error { return same("succeeded", int32(1), j.Status.Succeeded) })
	reports(t, env, member2, template, func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{StartTime: &now, Failed: 2, Conditions: ended(batchv1.JobFailureTarget, batchv1.JobFailed)}
	})
	await(t, env.Karmada, template, func(j *batchv1.Job) error {
		var got []string
		for _, condition := range j.Status.Conditions {
			got = append(got, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
		}
		message := "JobFailed: Job executed failed in member clusters " + member2
		return errors.Join(
			same("conditions", []string{"FailureTarget=True " + message, "Failed=True " + message}, got),
			same("succeeded and failed", []int32{1, 2}, []int32{j.Status.Succeeded, j.Status.Failed}))
	})
}
