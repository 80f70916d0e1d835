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

// bindByHand makes a binding that no policy and no scheduler has a say in.
func bindByHand(t testing.TB, env *testenv.Env, template client.Object, clusters ...string) *workv1alpha2.ResourceBinding {
	t.Helper()
	selector := selectorOf(t, template)
	made := bindingOf(t, template)
	made.Finalizers = []string{workv1alpha2.BindingControllerFinalizer}
	made.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: selector.APIVersion, Kind: selector.Kind, Namespace: selector.Namespace, Name: selector.Name,
		UID: template.GetUID(), ResourceVersion: template.GetResourceVersion(),
	}
	made.Spec.Clusters = targetsOn(clusters...)
	env.Create(t, made)
	return made
}

func targetsOn(clusters ...string) []workv1alpha2.TargetCluster {
	targets := make([]workv1alpha2.TargetCluster, len(clusters))
	for i, name := range clusters {
		targets[i].Name = name
	}
	return targets
}

// evict moves a binding from one cluster to another.
func evict(t testing.TB, env *testenv.Env, bound *workv1alpha2.ResourceBinding, from, to string, mode policyv1alpha1.PurgeMode) {
	t.Helper()
	untilTold := true
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = targetsOn(to)
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
			FromCluster: from, PurgeMode: mode, Reason: "TestsMoveIt", Producer: "test",
			SuppressDeletion: &untilTold, CreationTimestamp: &metav1.Time{Time: time.Now()},
		}}
	})
}

func TestWorkloadThatIsEvictedStaysUnchangedUntilItsTaskIsDone(t *testing.T) {
	env := shared(t)
	for _, mode := range []policyv1alpha1.PurgeMode{policyv1alpha1.PurgeModeGracefully, policyv1alpha1.PurgeModeNever} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			template := configMap(env.Namespace(t), "evicted")
			env.Create(t, template)
			bound := bindByHand(t, env, template, member1)
			inMember(t, env, member1, template, hasColor("blue"))

			evict(t, env, bound, member1, member2, mode)
			inMember(t, env, member2, template, hasColor("blue"))
			testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
			testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Resource.ResourceVersion = template.ResourceVersion
			})
			inMember(t, env, member2, template, hasColor("green"))
			testenv.Holds(t, "the old version where it leaves", quiet, func(ctx context.Context) error {
				stored := configMap(template.Namespace, template.Name)
				if err := member(env, member1).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
					return err
				}
				return hasColor("blue")(stored)
			})

			testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks = nil })
			awaitGone(t, member(env, member1), template)
			awaitGone(t, env.Karmada, workOf(t, member1, template))
			inMember(t, env, member2, template, hasColor("green"))
		})
	}
}

func TestClusterThatIsPurgedDirectlyIsEmptyBeforeAnyOtherGetsTheWorkload(t *testing.T) {
	env := shared(t)
	const hold = "test.karmada.io/hold"
	template := configMap(env.Namespace(t), "moved")
	env.Create(t, template)
	bound := bindByHand(t, env, template, member1)
	inMember(t, env, member1, template, exists)
	of := workOf(t, member1, template)
	testenv.Update(t, env.Karmada, of, func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, hold) })

	evict(t, env, bound, member1, member2, policyv1alpha1.PurgeModeDirectly)
	awaitGone(t, member(env, member1), template)
	testenv.Holds(t, "nothing in the next cluster", quiet, func(ctx context.Context) error {
		return errors.Join(absent(ctx, member(env, member2), template), absent(ctx, env.Karmada, workOf(t, member2, template)))
	})
	testenv.Update(t, env.Karmada, of, func(w *workv1alpha1.Work) {
		w.Finalizers = slices.DeleteFunc(w.Finalizers, func(one string) bool { return one == hold })
	})
	inMember(t, env, member2, template, exists)
	awaitGone(t, env.Karmada, of)
}

func TestCompletionsOfAJobAreDividedLikeItsReplicas(t *testing.T) {
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
	env.Create(t, policyFor(t, divided(map[string]int64{member1: 1, member2: 1, member3: 2}), template), template)
	total := int32(0)
	for cluster, wants := range map[string]struct {
		parallelism int32
		completions []int32 // which of them, the tie decides
	}{
		member1: {1, []int32{2, 3}}, member2: {1, []int32{2, 3}}, member3: {2, []int32{5}},
	} {
		made := inMember(t, env, cluster, template, func(j *batchv1.Job) error {
			if !slices.Contains(wants.completions, *j.Spec.Completions) {
				return fmt.Errorf("%d completions, want one of %v", *j.Spec.Completions, wants.completions)
			}
			return same("parallelism", wants.parallelism, *j.Spec.Parallelism)
		})
		total += *made.Spec.Completions
	}
	if total != completions {
		t.Errorf("members complete %d, the template asks for %d", total, completions)
	}
}

// relabel sets a label of a cluster, or removes it with an empty value.
func relabel(t testing.TB, env *testenv.Env, cluster, key, value string) {
	t.Helper()
	testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) {
		if value == "" {
			delete(c.Labels, key)
			return
		}
		c.Labels[key] = value
	})
}

// reschedule asks for a binding to be scheduled as if it were new.
func reschedule(t testing.TB, env *testenv.Env, bound *workv1alpha2.ResourceBinding) {
	t.Helper()
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Now()}
	})
}

func keptWithoutFit(clusters ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		told := condition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit", "0/3 clusters are available: ")
		for _, one := range b.Status.Conditions {
			if one.Type == workv1alpha2.Scheduled && !strings.HasSuffix(one.Message, "The previous placement is kept.") {
				told = errors.Join(told, fmt.Errorf("it says %q", one.Message))
			}
		}
		return errors.Join(told, names(clusters...)(b))
	}
}

// A cluster that loses what a spread constraint asks for is not a wish of the user.
func TestWorkloadStaysWhenNoClusterFitsAnyMoreUntilItsUserMovesIt(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	provider := template.Namespace
	provide(t, env, member2, provider)
	t.Cleanup(func() { provide(t, env, member2, "") })
	placement := on(member2)
	placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
		{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1}, {SpreadByField: policyv1alpha1.SpreadByFieldProvider, MinGroups: 1},
	}
	policy := policyFor(t, placement, template)
	env.Create(t, policy, template)
	made := inMember(t, env, member2, template, replicas(2))
	bound := await(t, env.Karmada, bindingOf(t, template), names(member2))

	provide(t, env, member2, "")
	reschedule(t, env, bound)
	await(t, env.Karmada, bound, keptWithoutFit(member2))
	// What the user changes about the template is still delivered.
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
	inMember(t, env, member2, template, func(d *appsv1.Deployment) error {
		return errors.Join(same("uid", made.UID, d.UID), same("image", "nginx:2", d.Spec.Template.Spec.Containers[0].Image))
	})
	await(t, env.Karmada, bound, keptWithoutFit(member2))

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = on("nowhere") })
	awaitGone(t, member(env, member2), template)
	await(t, env.Karmada, bound, names())
}

// provide sets the provider of a cluster.
func provide(t testing.TB, env *testenv.Env, cluster, provider string) {
	t.Helper()
	testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = provider })
}

func TestWorkloadLeavesAClusterThatItsAffinityDoesNotSelectAnyMore(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	label := template.Namespace
	relabel(t, env, member2, label, "yes")
	t.Cleanup(func() { relabel(t, env, member2, label, "") })
	policy := policyFor(t, policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}},
	}}, template)
	env.Create(t, policy, template)
	inMember(t, env, member2, template, replicas(2))
	bound := await(t, env.Karmada, bindingOf(t, template), names(member2))

	relabel(t, env, member2, label, "")
	awaitGone(t, member(env, member2), template)
	await(t, env.Karmada, bound, names())
	unscheduled(t, env, bound, "NoClusterFit", "no cluster matches the cluster affinity (labelSelector "+label+"=yes)")
	relabel(t, env, member2, label, "yes")
	inMember(t, env, member2, template, replicas(2))
}

func TestWorkloadStaysWhenItsClusterServesItsKindNoMore(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	namespaceIn(t, env, member1, namespace)
	definition := widgets()
	definition.Name = "sprockets.example.org"
	definition.Spec.Group = "example.org"
	definition.Spec.Names.Plural, definition.Spec.Names.Singular = "sprockets", "sprocket"
	definition.Spec.Names.Kind, definition.Spec.Names.ListKind = "Sprocket", "SprocketList"
	cleanUp(t, env, define(t, env.Karmada, definition))
	served := define(t, member(env, member1), definition)
	template := widget(namespace)
	template.SetAPIVersion("example.org/v1")
	template.SetKind("Sprocket")
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sprockets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Sprocket"}},
			Placement:         on(member1, member2),
		},
	})
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "wheel-sprocket"}}
	await(t, env.Karmada, bound, names(member1))
	inMember(t, env, member1, template, exists)

	deleteObject(t, member(env, member1), served)
	await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		for _, enabled := range c.Status.APIEnablements {
			if enabled.GroupVersion == "example.org/v1" {
				return errors.New("the cluster still serves the kind")
			}
		}
		return nil
	})
	awaitGone(t, member(env, member1), served)
	reschedule(t, env, bound)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(same("generation that was scheduled", b.Generation, b.Status.SchedulerObservedGeneration), names(member1)(b))
	})
	// It comes back with its kind.
	define(t, member(env, member1), definition)
	inMember(t, env, member1, template, exists)
	await(t, env.Karmada, bound, names(member1))
}

// Not in parallel: whoever forces a binding away does so while nobody is there to
// let it go.
func TestBindingThatIsForcedAwayAndMadeAnewTakesOverItsWorks(t *testing.T) {
	env := alone(t)
	template := configMap(env.Namespace(t), "lasting")
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	made := inMember(t, env, member1, template, exists)
	before := await(t, env.Karmada, workOf(t, member1, template), applied)
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
	anew := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if b.UID == bound.UID {
			return errors.New("it is the old binding")
		}
		return names(member1, member2)(b)
	})
	await(t, env.Karmada, before, func(w *workv1alpha1.Work) error {
		return errors.Join(same("uid", before.UID, w.UID),
			same("binding's id", anew.Labels[workv1alpha2.ResourceBindingPermanentIDLabel], w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]),
			same("own id", before.Labels[workv1alpha1.WorkPermanentIDLabel], w.Labels[workv1alpha1.WorkPermanentIDLabel]))
	})
	inMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return same("uid", made.UID, c.UID) })
	deleteObject(t, env.Karmada, template)
	for _, cluster := range []string{member1, member2} {
		awaitGone(t, member(env, cluster), template)
		awaitGone(t, env.Karmada, workOf(t, cluster, template))
	}
}

func TestManifestWithNothingInAFieldIsWrittenOnce(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}}
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}},
		Type:       corev1.SecretTypeServiceAccountToken,
		Data:       map[string][]byte{"extra": []byte("of the control plane")},
	}
	policy := policyFor(t, on(member1), account, token)
	env.Create(t, account, token, policy)
	of := await(t, env.Karmada, workOf(t, member1, token), applied)
	made := inMember(t, env, member1, token, exists)
	if _, leaked := made.Data["extra"]; leaked {
		t.Error("the token of the control plane is in the member")
	}
	// The first change of the Work is stored otherwise than its creation.
	testenv.Update(t, env.Karmada, token, func(s *corev1.Secret) { s.Labels = map[string]string{"color": "green"} })
	inMember(t, env, member1, token, func(s *corev1.Secret) error { return same("label", "green", s.Labels["color"]) })
	of = await(t, env.Karmada, of, applied)

	// A policy that says nothing about this cluster makes the binding be looked at.
	look := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "look"},
		Spec: overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, token), selectorOf(t, account)},
			policyv1alpha1.RuleWithCluster{
				TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"nowhere"}},
				Overriders: policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
					{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"a": "b"}},
				}},
			}),
	}
	env.Create(t, look)
	testenv.Holds(t, "nothing is written", quiet, func(ctx context.Context) error {
		stored := workOf(t, member1, token)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		return same("generation", of.Generation, stored.Generation)
	})
}
