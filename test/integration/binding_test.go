package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// createBindingWithoutPolicy creates a binding that no policy and no scheduler changes.
func createBindingWithoutPolicy(t testing.TB, env *testenv.Env, template client.Object, clusters ...string) *workv1alpha2.ResourceBinding {
	t.Helper()
	selector := selectorOf(t, template)
	binding := bindingOf(t, template)
	binding.Finalizers = []string{workv1alpha2.BindingControllerFinalizer}
	binding.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: selector.APIVersion, Kind: selector.Kind, Namespace: selector.Namespace, Name: selector.Name,
		UID: template.GetUID(), ResourceVersion: template.GetResourceVersion(),
	}
	binding.Spec.Clusters = targetClusters(clusters...)
	env.Create(t, binding)
	return binding
}

func targetClusters(clusters ...string) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, len(clusters))
	for i, name := range clusters {
		targets[i].Name = name
	}
	return targets
}

// evict moves a binding to another cluster with a graceful eviction task for the old one.
func evict(t testing.TB, env *testenv.Env, bound *workv1alpha2.ResourceBinding, from, to string, mode policyv1alpha1.PurgeMode) {
	t.Helper()
	suppressDeletion := true
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = targetClusters(to)
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: from, PurgeMode: mode, Reason: "TestsMoveIt", Producer: "test",
			SuppressDeletion: &suppressDeletion, CreationTimestamp: &metav1.Time{Time: time.Now()},
		}}
	})
}

func TestEvictedWorkloadIsUnchangedUntilTaskIsDone(t *testing.T) {
	env := shared(t)
	for _, mode := range []policyv1alpha1.PurgeMode{policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeNever} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			template := configMap(env.Namespace(t), "evicted")
			env.Create(t, template)
			bound := createBindingWithoutPolicy(t, env, template, member1)
			awaitInMember(t, env, member1, template, hasColor("blue"))

			evict(t, env, bound, member1, member2, mode)
			awaitInMember(t, env, member2, template, hasColor("blue"))
			testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
			testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Resource.ResourceVersion = template.ResourceVersion
			})
			awaitInMember(t, env, member2, template, hasColor("green"))
			testenv.Holds(t, "the old version in the cluster of the eviction task", quietPeriod, func(ctx context.Context) error {
				stored := configMap(template.Namespace, template.Name)
				if err := memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
					return err
				}
				return hasColor("blue")(stored)
			})

			testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks = nil })
			awaitGone(t, memberClient(env, member1), template)
			awaitGone(t, env.Karmada, workOf(t, member1, template))
			awaitInMember(t, env, member2, template, hasColor("green"))
		})
	}
}

func TestPurgeModeDirectlyDeletesOldCopyFirst(t *testing.T) {
	env := shared(t)
	const holdFinalizer = "test.karmada.io/hold"
	template := configMap(env.Namespace(t), "moved")
	env.Create(t, template)
	bound := createBindingWithoutPolicy(t, env, template, member1)
	awaitInMember(t, env, member1, template, exists)
	oldWork := workOf(t, member1, template)
	testenv.Update(t, env.Karmada, oldWork, func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, holdFinalizer) })

	evict(t, env, bound, member1, member2, policyv1alpha1.PurgeModeDirectly)
	awaitGone(t, memberClient(env, member1), template)
	testenv.Holds(t, "no copy in the new cluster", quietPeriod, func(ctx context.Context) error {
		return errors.Join(checkAbsent(ctx, memberClient(env, member2), template), checkAbsent(ctx, env.Karmada, workOf(t, member2, template)))
	})
	testenv.Update(t, env.Karmada, oldWork, func(w *workv1alpha1.Work) {
		w.Finalizers = slices.DeleteFunc(w.Finalizers, func(one string) bool { return one == holdFinalizer })
	})
	awaitInMember(t, env, member2, template, exists)
	awaitGone(t, env.Karmada, oldWork)
}

func TestJobCompletionsAreDividedLikeReplicas(t *testing.T) {
	env := shared(t)
	completions, parallelism := int32(10), int32(4)
	template := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "sum"},
		Spec: batchv1.JobSpec{
			Completions: &completions, Parallelism: &parallelism,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox"}},
			}},
		},
	}
	env.Create(t, policyFor(t, dividedPlacement(map[string]int64{member1: 1, member2: 1, member3: 2}), template), template)
	total := int32(0)
	for cluster, wants := range map[string]struct {
		parallelism int32
		completions []int32 // a tie break decides which of them
	}{
		member1: {1, []int32{2, 3}}, member2: {1, []int32{2, 3}}, member3: {2, []int32{5}},
	} {
		memberJob := awaitInMember(t, env, cluster, template, func(j *batchv1.Job) error {
			if !slices.Contains(wants.completions, *j.Spec.Completions) {
				return fmt.Errorf("%d completions, want one of %v", *j.Spec.Completions, wants.completions)
			}
			return checkEqual("parallelism", wants.parallelism, *j.Spec.Parallelism)
		})
		total += *memberJob.Spec.Completions
	}
	if total != completions {
		t.Errorf("completions of all members: %d, of the template: %d", total, completions)
	}
}

// setClusterLabel sets a label of a Cluster, or removes the label if the value is empty.
func setClusterLabel(t testing.TB, env *testenv.Env, cluster, key, value string) {
	t.Helper()
	testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) {
		if value == "" {
			delete(c.Labels, key)
			return
		}
		c.Labels[key] = value
	})
}

// triggerRescheduling makes the scheduler schedule a binding like a new one.
func triggerRescheduling(t testing.TB, env *testenv.Env, bound *workv1alpha2.ResourceBinding) {
	t.Helper()
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Now()}
	})
}

// isPlacementKeptWithoutFit checks that no cluster fits and that the previous clusters are kept.
func isPlacementKeptWithoutFit(clusters ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		errs := checkCondition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit", "0/3 clusters are available: ")
		for _, one := range b.Status.Conditions {
			if one.Type == workv1alpha2.Scheduled && !strings.HasSuffix(one.Message, "The previous placement is kept.") {
				errs = errors.Join(errs, fmt.Errorf("the message is %q", one.Message))
			}
		}
		return errors.Join(errs, hasClusters(clusters...)(b))
	}
}

// A cluster that no longer satisfies a spread constraint is not a change by the user. So the
// workload stays until the user changes the policy.
func TestPlacementIsKeptWhenNoClusterFits(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	provider := template.Namespace
	setProvider(t, env, member2, provider)
	t.Cleanup(func() { setProvider(t, env, member2, "") })
	placement := placementOn(member2)
	placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
		{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1}, {SpreadByField: policyv1alpha1.SpreadByFieldProvider, MinGroups: 1},
	}
	policy := policyFor(t, placement, template)
	env.Create(t, policy, template)
	memberObject := awaitInMember(t, env, member2, template, hasReplicas(2))
	bound := await(t, env.Karmada, bindingOf(t, template), hasClusters(member2))

	setProvider(t, env, member2, "")
	triggerRescheduling(t, env, bound)
	await(t, env.Karmada, bound, isPlacementKeptWithoutFit(member2))
	// Changes of the template are still delivered.
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
	awaitInMember(t, env, member2, template, func(d *appsv1.Deployment) error {
		return errors.Join(checkEqual("uid", memberObject.UID, d.UID), checkEqual("image", "nginx:2", d.Spec.Template.Spec.Containers[0].Image))
	})
	await(t, env.Karmada, bound, isPlacementKeptWithoutFit(member2))

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn("nowhere") })
	awaitGone(t, memberClient(env, member2), template)
	await(t, env.Karmada, bound, hasClusters())
}

// setProvider sets the provider of a cluster.
func setProvider(t testing.TB, env *testenv.Env, cluster, provider string) {
	t.Helper()
	testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = provider })
}

func TestWorkloadLeavesClusterThatAffinityNoLongerSelects(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	label := template.Namespace
	setClusterLabel(t, env, member2, label, "yes")
	t.Cleanup(func() { setClusterLabel(t, env, member2, label, "") })
	policy := policyFor(t, policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}},
	}}, template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member2, template, hasReplicas(2))
	bound := await(t, env.Karmada, bindingOf(t, template), hasClusters(member2))

	setClusterLabel(t, env, member2, label, "")
	awaitGone(t, memberClient(env, member2), template)
	await(t, env.Karmada, bound, hasClusters())
	awaitUnscheduled(t, env, bound, "NoClusterFit", "no cluster matches the cluster affinity (labelSelector "+label+"=yes)")
	setClusterLabel(t, env, member2, label, "yes")
	awaitInMember(t, env, member2, template, hasReplicas(2))
}

func TestPlacementIsKeptWhenKindIsNoLongerServed(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member1, namespace)
	definition := newWidgetCRD()
	definition.Name = "sprockets.example.org"
	definition.Spec.Group = "example.org"
	definition.Spec.Names.Plural, definition.Spec.Names.Singular = "sprockets", "sprocket"
	definition.Spec.Names.Kind, definition.Spec.Names.ListKind = "Sprocket", "SprocketList"
	cleanUp(t, env, createCRD(t, env.Karmada, definition))
	served := createCRD(t, memberClient(env, member1), definition)
	template := newWidget(namespace)
	template.SetAPIVersion("example.org/v1")
	template.SetKind("Sprocket")
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sprockets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Sprocket"}},
			Placement:         placementOn(member1, member2),
		},
	})
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wheel-sprocket"}}
	await(t, env.Karmada, bound, hasClusters(member1))
	awaitInMember(t, env, member1, template, exists)

	deleteObject(t, memberClient(env, member1), served)
	await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		for _, enabled := range c.Status.APIEnablements {
			if enabled.GroupVersion == "example.org/v1" {
				return errors.New("the cluster still serves the kind")
			}
		}
		return nil
	})
	awaitGone(t, memberClient(env, member1), served)
	triggerRescheduling(t, env, bound)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(checkEqual("scheduler observed generation", b.Generation, b.Status.SchedulerObservedGeneration), hasClusters(member1)(b))
	})
	// The member object is recreated when the kind is served again.
	createCRD(t, memberClient(env, member1), definition)
	awaitInMember(t, env, member1, template, exists)
	await(t, env.Karmada, bound, hasClusters(member1))
}

// The test stops the components so that they do not release the binding while its finalizers
// are removed.
func TestRecreatedBindingAdoptsWorks(t *testing.T) {
	env := alone(t)
	template := configMap(env.Namespace(t), "lasting")
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	memberObject := awaitInMember(t, env, member1, template, exists)
	before := await(t, env.Karmada, workOf(t, member1, template), isApplied)
	bound := await(t, env.Karmada, bindingOf(t, template), exists)

	if err := env.StopComponents(); err != nil {
		t.Error(err)
	}
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) { b.Finalizers = nil })
	deleteObject(t, env.Karmada, bound)
	awaitGone(t, env.Karmada, bound)
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	recreated := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if b.UID == bound.UID {
			return errors.New("the binding has the UID of the old one")
		}
		return hasClusters(member1, member2)(b)
	})
	await(t, env.Karmada, before, func(w *workv1alpha1.Work) error {
		return errors.Join(checkEqual("uid", before.UID, w.UID),
			checkEqual("permanent ID of the binding", recreated.Labels[workv1alpha2.ResourceBindingPermanentIDLabel], w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]),
			checkEqual("permanent ID of the Work", before.Labels[workv1alpha1.WorkPermanentIDLabel], w.Labels[workv1alpha1.WorkPermanentIDLabel]))
	})
	awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return checkEqual("uid", memberObject.UID, c.UID) })
	deleteObject(t, env.Karmada, template)
	for _, cluster := range []string{member1, member2} {
		awaitGone(t, memberClient(env, cluster), template)
		awaitGone(t, env.Karmada, workOf(t, cluster, template))
	}
}

func TestManifestWithEmptyFieldsIsWrittenOnce(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}},
		Type:       corev1.SecretTypeServiceAccountToken,
		Data:       map[string][]byte{"extra": []byte("of the control plane")},
	}
	policy := policyFor(t, placementOn(member1), account, token)
	env.Create(t, account, token, policy)
	tokenWork := await(t, env.Karmada, workOf(t, member1, token), isApplied)
	memberSecret := awaitInMember(t, env, member1, token, exists)
	if _, leaked := memberSecret.Data["extra"]; leaked {
		t.Error("the token of the control plane is in the member")
	}
	// Update the Work once before the check, because the first update of a Work is serialized
	// differently from its creation.
	testenv.Update(t, env.Karmada, token, func(s *corev1.Secret) { s.Labels = map[string]string{"color": "green"} })
	awaitInMember(t, env, member1, token, func(s *corev1.Secret) error { return checkEqual("label", "green", s.Labels["color"]) })
	tokenWork = await(t, env.Karmada, tokenWork, isApplied)

	// An override policy for another cluster makes the binding controller reconcile the binding.
	unrelatedOverride := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "look"},
		Spec: newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, token), selectorOf(t, account)},
			policyv1alpha1.RuleWithCluster{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"nowhere"}},
				Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
					{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"a": "b"}},
				}},
			}),
	}
	env.Create(t, unrelatedOverride)
	testenv.Holds(t, "the Work is not written", quietPeriod, func(ctx context.Context) error {
		stored := workOf(t, member1, token)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		return checkEqual("generation", tokenWork.Generation, stored.Generation)
	})
}
