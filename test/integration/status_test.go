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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// simulateRollout writes the status of a Deployment like the controllers of a member: all
// replicas exist, and the given number is ready.
func simulateRollout(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32) {
	t.Helper()
	testenv.Eventually(t, "status in "+cluster, func(ctx context.Context) error {
		return writeRolloutStatus(ctx, env, cluster, template, ready)
	})
}

// startSimulatedRollout simulates the rollout as soon as a member has the object, until the
// test ends. It is for workloads that are evicted soon unless they are healthy.
func startSimulatedRollout(t testing.TB, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return writeRolloutStatus(ctx, env, cluster, template, ready) == nil, nil
		})
	}()
}

// writeRolloutStatus writes the status of a Deployment in a member with the given number of
// ready replicas.
func writeRolloutStatus(ctx context.Context, env *testenv.Env, cluster string, template *appsv1.Deployment, ready int32) error {
	object := deployment(template.Namespace, template.Name, 0)
	if err := memberClient(env, cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	object.Status = appsv1.DeploymentStatus{
		ObservedGeneration: object.Generation, Replicas: *object.Spec.Replicas, UpdatedReplicas: *object.Spec.Replicas,
		ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: *object.Spec.Replicas - ready,
	}
	return memberClient(env, cluster).Status().Update(ctx, object)
}

// setMemberStatus changes the status of an object as soon as the member has it, and retries
// conflicts.
func setMemberStatus[T client.Object](t testing.TB, env *testenv.Env, cluster string, template T, change func(T)) {
	t.Helper()
	testenv.Eventually(t, "status in "+cluster, func(ctx context.Context) error {
		object, ok := emptyObject(template).(T)
		if !ok {
			return fmt.Errorf("cannot make a new %T", template)
		}
		if err := memberClient(env, cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return memberClient(env, cluster).Status().Update(ctx, object)
	})
}

// checkObservedGeneration returns an error if a condition is not of the given generation.
func checkObservedGeneration(list []metav1.Condition, kind string, generation int64) error {
	found := meta.FindStatusCondition(list, kind)
	if found == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	return checkEqual("observed generation of "+kind, generation, found.ObservedGeneration)
}

func hasHealth(want ...workv1alpha2.ResourceHealth) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []workv1alpha2.ResourceHealth
		for _, item := range b.Status.AggregatedStatus {
			got = append(got, item.Health)
		}
		return checkEqual("health", want, got)
	}
}

func TestMemberStatusesAreAggregatedInTheTemplate(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 3)
	env.Create(t, policyFor(t, dividedPlacement(map[string]int64{member1: 1, member2: 2}), template), template)
	awaitInMember(t, env, member1, template, hasReplicas(1))
	awaitInMember(t, env, member2, template, hasReplicas(2))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			checkCondition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionTrue, "Success", "Binding has been scheduled successfully."),
			checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "All works have been successfully applied"),
			checkObservedGeneration(b.Status.Conditions, workv1alpha2.Scheduled, b.Generation),
			checkObservedGeneration(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation),
			checkEqual("generation observed by the scheduler", b.Generation, b.Status.SchedulerObservedGeneration))
	})

	simulateRollout(t, env, member1, template, 1)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		if len(w.Status.ManifestStatuses) != 1 || w.Status.ManifestStatuses[0].Health != workv1alpha1.ResourceHealthy {
			return fmt.Errorf("the manifest statuses are %+v", w.Status.ManifestStatuses)
		}
		return checkObservedGeneration(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	want := workv1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: template.Namespace, Name: "web"}
	if err := checkEqual("identifier", want, memberWork.Status.ManifestStatuses[0].Identifier); err != nil {
		t.Error(err)
	}
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		// member2 has not reported a status, so the rollout is not complete.
		if d.Status.ObservedGeneration == d.Generation {
			return errors.New("the current generation is reported as observed")
		}
		return checkEqual("available", int32(1), d.Status.AvailableReplicas)
	})

	simulateRollout(t, env, member2, template, 1)
	rb := await(t, env.Karmada, bindingOf(t, template), hasHealth(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy))
	if err := checkEqual("clusters", []string{member1, member2}, []string{
		rb.Status.AggregatedStatus[0].ClusterName, rb.Status.AggregatedStatus[1].ClusterName,
	}); err != nil {
		t.Error(err)
	}
	stored := await(t, env.Karmada, template, func(d *appsv1.Deployment) error {
		got := d.Status
		got.Conditions = nil
		return checkEqual("status", appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 2, AvailableReplicas: 2, UnavailableReplicas: 1,
		}, got)
	})
	var reported struct{ Generation, ResourceTemplateGeneration int64 }
	if err := json.Unmarshal(rb.Status.AggregatedStatus[0].Status.Raw, &reported); err != nil {
		t.Fatal(err)
	}
	if reported.ResourceTemplateGeneration != stored.Generation {
		t.Errorf("the status of member1 is of generation %d of the template, which has %d", reported.ResourceTemplateGeneration, stored.Generation)
	}

	simulateRollout(t, env, member2, template, 2)
	await(t, env.Karmada, rb, hasHealth(workv1alpha2.ResourceHealthy, workv1alpha2.ResourceHealthy))
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return checkEqual("ready", int32(3), d.Status.ReadyReplicas) })
}

func TestRolloutIsCompleteOnlyWhenEveryMemberReportsIt(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	isRolledOut := func(d *appsv1.Deployment) error {
		// `kubectl rollout status` checks the same condition.
		if d.Status.ObservedGeneration < d.Generation {
			return fmt.Errorf("the observed generation is %d of %d", d.Status.ObservedGeneration, d.Generation)
		}
		return checkEqual("available", int32(2), d.Status.AvailableReplicas)
	}
	for _, cluster := range []string{member1, member2} {
		awaitInMember(t, env, cluster, template, exists)
		simulateRollout(t, env, cluster, template, 1)
	}
	await(t, env.Karmada, template, isRolledOut)

	const image = "docker.io/library/nginx:1.28"
	hasImage := func(d *appsv1.Deployment) error {
		return checkEqual("image", image, d.Spec.Template.Spec.Containers[0].Image)
	}
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	awaitInMember(t, env, member1, template, hasImage)
	awaitInMember(t, env, member2, template, hasImage)
	simulateRollout(t, env, member1, template, 1)
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
	testenv.Holds(t, "the rollout is not complete", quietPeriod, func(ctx context.Context) error {
		stored := deployment(template.Namespace, template.Name, 0)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		if isRolledOut(stored) == nil {
			return errors.New("the rollout is reported as complete")
		}
		return nil
	})
	simulateRollout(t, env, member2, template, 1)
	await(t, env.Karmada, template, isRolledOut)
}

func TestObjectWithoutStatusIsHealthyOnceApplied(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "plain")
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			hasHealth(workv1alpha2.ResourceHealthy)(b),
			checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", ""))
	})
}

func TestLoadBalancerAddressesOfAllMembersAreAggregated(t *testing.T) {
	env := shared(t)
	template := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	for cluster, ip := range map[string]string{member1: "192.0.2.2", member2: "192.0.2.1"} {
		setMemberStatus(t, env, cluster, template, func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}} })
	}
	await(t, env.Karmada, template, func(s *corev1.Service) error {
		var got []string
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			got = append(got, ingress.IP)
		}
		return checkEqual("addresses", []string{"192.0.2.1", "192.0.2.2"}, got)
	})
}

func TestStatusIsReflectedWhileDispatchingIsSuspended(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	policy := policyFor(t, placementOn(member1), template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, exists)
	suspendDispatching(t, env, policy)
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})
	simulateRollout(t, env, member1, template, 1)
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return checkEqual("ready", int32(1), d.Status.ReadyReplicas) })
}

// isFullyApplied checks that a binding reports its current generation as applied in all its
// clusters.
func isFullyApplied(b *workv1alpha2.ResourceBinding) error {
	return errors.Join(
		checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", ""),
		checkObservedGeneration(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation))
}

// When `kubectl wait` for FullyApplied succeeds, the members have the change.
func TestFullyAppliedMeansThatEveryMemberHasTheChange(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "changing")
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	rb := await(t, env.Karmada, bindingOf(t, template), isFullyApplied)
	for _, color := range []string{"red", "green", "yellow", "white"} {
		testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = color })
		before := rb.Generation
		rb = await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
			if b.Generation == before {
				return errors.New("the binding does not have the change yet")
			}
			return isFullyApplied(b)
		})
		for _, cluster := range []string{member1, member2} {
			memberObject := configMap(template.Namespace, template.Name)
			if err := memberClient(env, cluster).Get(t.Context(), client.ObjectKeyFromObject(memberObject), memberObject); err != nil {
				t.Fatal(err)
			}
			if err := hasColor(color)(memberObject); err != nil {
				t.Errorf("%s: %v", cluster, err)
			}
		}
	}
}

func TestFullyAppliedNamesClustersWithRenderFailures(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "blocked")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "impossible"},
		Spec:       newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, replaceOverride(t, "/spec/no/such/path", "x", member2)),
	}
	env.Create(t, override, policyFor(t, placementOn(member1, member2), template), template)
	awaitInMember(t, env, member1, template, exists)
	rb := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if err := checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", ""); err != nil {
			return err
		}
		message := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied).Message
		if !strings.HasPrefix(message, workv1alpha2.FullyAppliedFailedMessage+": "+member2+": ") {
			return fmt.Errorf("the message is %q", message)
		}
		if len(b.Status.AggregatedStatus) != 2 || b.Status.AggregatedStatus[1].Applied || b.Status.AggregatedStatus[1].AppliedMessage == "" {
			return fmt.Errorf("the aggregated status is %+v", b.Status.AggregatedStatus)
		}
		return nil
	})
	deleteObject(t, env.Karmada, override)
	await(t, env.Karmada, rb, isFullyApplied)
	awaitInMember(t, env, member2, template, exists)
}

// placeManually creates a policy whose scheduler does not exist and sets the cluster of the
// binding.
func placeManually(t testing.TB, env *testenv.Env, template client.Object, cluster string) *workv1alpha2.ResourceBinding {
	t.Helper()
	policy := policyFor(t, placementOn(cluster), template)
	policy.Spec.SchedulerName = "nobody"
	env.Create(t, policy, template)
	rb := await(t, env.Karmada, bindingOf(t, template), exists)
	testenv.Update(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster}}
	})
	return rb
}

// The test needs an environment in which clusters may join. In the environment of shared, other
// tests count the clusters, and wait until all clusters have deleted their namespaces.
func TestUnreachableClusterIsReportedWithItsTime(t *testing.T) {
	env := joining(t)
	namespace := env.Namespace(t)
	lost := clusterNamed("lost-" + namespace)
	lost.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1", InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: namespace, Name: "credentials"},
	}
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"}, StringData: map[string]string{"token": "x"}}
	cleanUp(t, env, lost)
	env.Create(t, credentials, lost)
	notReadyCluster := await(t, env.Karmada, lost, func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionFalse, "ClusterNotReachable", "")
	})
	template := configMap(namespace, "stranded")
	rb := placeManually(t, env, template, lost.Name)
	notReadySince := meta.FindStatusCondition(notReadyCluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady).LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z")
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		want := []workv1alpha2.AggregatedStatusItem{{
			ClusterName: lost.Name, AppliedMessage: fmt.Sprintf("cluster %s is not ready since %s", lost.Name, notReadySince), Health: workv1alpha2.ResourceUnknown,
		}}
		return checkEqual("aggregated status", want, b.Status.AggregatedStatus)
	})
	deleteObject(t, env.Karmada, template)
	unregisterCluster(t, env, lost.Name)
}

func TestDeletedMemberObjectHasNoStatus(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	policy := policyFor(t, placementOn(member1), template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, exists)
	simulateRollout(t, env, member1, template, 1)
	rb := await(t, env.Karmada, bindingOf(t, template), hasHealth(workv1alpha2.ResourceHealthy))
	suspendDispatching(t, env, policy)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})

	deleteObject(t, memberClient(env, member1), deployment(template.Namespace, template.Name, 1))
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkEqual("manifest statuses", 0, len(w.Status.ManifestStatuses))
	})
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		want := []workv1alpha2.AggregatedStatusItem{{ClusterName: member1, Applied: true, Health: workv1alpha2.ResourceUnknown}}
		return checkEqual("aggregated status", want, b.Status.AggregatedStatus)
	})
	await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return checkEqual("ready", int32(0), d.Status.ReadyReplicas) })
}

func TestEveryManifestOfAWorkHasItsStatus(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member1, namespace)
	byHand := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(member1), Name: namespace}}
	for _, manifest := range []client.Object{configMap(namespace, "one"), deployment(namespace, "two", 1), configMap(namespace, "three")} {
		selector := selectorOf(t, manifest)
		// The labels and annotations link the member object to its Work.
		manifest.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
		manifest.SetAnnotations(map[string]string{
			workv1alpha1.WorkNamespaceAnnotation: byHand.Namespace, workv1alpha1.WorkNameAnnotation: byHand.Name,
		})
		manifest.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind))
		raw, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		byHand.Spec.Workload.Manifests = append(byHand.Spec.Workload.Manifests, workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	cleanUp(t, env, byHand)
	env.Create(t, byHand)
	awaitInMember(t, env, member1, deployment(namespace, "two", 1), exists)
	simulateRollout(t, env, member1, deployment(namespace, "two", 1), 1)
	await(t, env.Karmada, byHand, func(w *workv1alpha1.Work) error {
		var got []string
		for _, status := range w.Status.ManifestStatuses {
			got = append(got, fmt.Sprintf("%d %s %s %s", status.Identifier.Ordinal, status.Identifier.Kind, status.Identifier.Name, status.Health))
		}
		return checkEqual("manifest statuses", []string{"0 ConfigMap one Healthy", "1 Deployment two Healthy", "2 ConfigMap three Healthy"}, got)
	})
	deleteObject(t, env.Karmada, byHand)
	awaitGone(t, env.Karmada, byHand)
}

func TestJobThatFailsInOneMemberFails(t *testing.T) {
	env := shared(t)
	template := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "once"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}}},
	}
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	now := metav1.Now()
	trueConditions := func(kinds ...batchv1.JobConditionType) (conditions []batchv1.JobCondition) {
		for _, kind := range kinds {
			conditions = append(conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		return conditions
	}
	setMemberStatus(t, env, member1, template, func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: trueConditions(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)}
	})
	// Wait until the first status is aggregated, because no status is aggregated after a Job has
	// failed.
	await(t, env.Karmada, template, func(j *batchv1.Job) error { return checkEqual("succeeded", int32(1), j.Status.Succeeded) })
	setMemberStatus(t, env, member2, template, func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{StartTime: &now, Failed: 2, Conditions: trueConditions(batchv1.JobFailureTarget, batchv1.JobFailed)}
	})
	await(t, env.Karmada, template, func(j *batchv1.Job) error {
		var got []string
		for _, condition := range j.Status.Conditions {
			got = append(got, fmt.Sprintf("%s=%s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
		}
		message := "JobFailed: Job executed failed in member clusters " + member2
		return errors.Join(
			checkEqual("conditions", []string{"FailureTarget=True " + message, "Failed=True " + message}, got),
			checkEqual("succeeded and failed", []int32{1, 2}, []int32{j.Status.Succeeded, j.Status.Failed}))
	})
}

func TestFinishedJobIsExecutedOnce(t *testing.T) {
	env := shared(t)
	template := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "import"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
		}}},
	}
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	now := metav1.Now()
	setMemberStatus(t, env, member1, template, func(j *batchv1.Job) {
		j.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}}
	})
	await(t, env.Karmada, template, func(j *batchv1.Job) error { return checkEqual("succeeded", int32(1), j.Status.Succeeded) })
	executed := awaitInMember(t, env, member1, template, exists)
	if err := memberClient(env, member1).Delete(t.Context(), executed, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, memberClient(env, member1), template)
	testenv.Holds(t, "the Job in "+member1, quietPeriod, func(ctx context.Context) error {
		if err := memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(template), &batchv1.Job{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Job is executed again: %w", err)
		}
		return nil
	})
	testenv.Update(t, env.Karmada, template, func(j *batchv1.Job) {
		j.Annotations = map[string]string{workv1alpha1.RecreateFinishedJobAnnotation: "true"}
	})
	awaitInMember(t, env, member1, template, exists)
}
