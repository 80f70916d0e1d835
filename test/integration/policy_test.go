package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// soon is how fast what nobody polls for happens, and less than any interval at
// which something is looked at anyway.
const soon = 20 * time.Second

// claimedBy tells how an object is not claimed by the policy of that name; empty
// means no policy at all.
func claimedBy[T client.Object](name string) func(T) error {
	return func(object T) error {
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		return errors.Join(
			same("claim", name, annotations[policyv1alpha1.PropagationPolicyNameAnnotation]+annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]),
			same("marked by an id", name != "",
				labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]+labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != ""))
	}
}

// awaitRest waits until objects of the control plane are not written any more. A
// loop that never comes to rest fails the test.
func awaitRest(t testing.TB, env *testenv.Env, objects ...client.Object) {
	t.Helper()
	versions := func(ctx context.Context) (all string, err error) {
		for _, object := range objects {
			fresh := empty(object)
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(object), fresh); err != nil {
				return "", err
			}
			all += fmt.Sprintf("%T %s is at %s; ", object, object.GetName(), fresh.GetResourceVersion())
		}
		return all, nil
	}
	last, since := "", clock.now()
	testenv.Eventually(t, "end of the writes", func(ctx context.Context) error {
		now, err := versions(ctx)
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, clock.now()
		}
		if clock.since(since) < quiet {
			return errors.New(now)
		}
		return nil
	})
}

// propagated waits until a member holds the template, and the binding that the
// template has is at rest. It returns the binding.
func propagated(t testing.TB, env *testenv.Env, template client.Object, clusters ...string) *workv1alpha2.ResourceBinding {
	t.Helper()
	for _, cluster := range clusters {
		inMember(t, env, cluster, template, exists)
	}
	bound := await(t, env.Karmada, bindingOf(t, template), names(clusters...))
	awaitRest(t, env, template, bound)
	return await(t, env.Karmada, bound, exists)
}

func TestTemplateGoesFromOnePolicyToTheNextWithItsBinding(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "swapped")
	first, second := policyFor(t, on(member1), template), policyFor(t, on(member1, member2), template)
	second.Name = "z-second"
	env.Create(t, first, second, template)
	bound := propagated(t, env, template, member1)
	await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap]("swapped"))
	made := inMember(t, env, member1, template, exists)

	testenv.Update(t, env.Karmada, first, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ResourceSelectors[0].Name = "something-else"
	})
	after := propagated(t, env, template, member1, member2)
	await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap]("z-second"))
	kept := inMember(t, env, member1, template, exists)
	if err := errors.Join(
		claimedBy[*workv1alpha2.ResourceBinding]("z-second")(after),
		same("binding", bound.UID, after.UID), same("object in the member", made.UID, kept.UID),
	); err != nil {
		t.Error(err)
	}

	// The first policy comes back, and is the better one by its name: who has a
	// template keeps it.
	testenv.Update(t, env.Karmada, first, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ResourceSelectors[0].Name = template.Name
	})
	awaitRest(t, env, first, second, template, after)
	await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap]("z-second"))
	await(t, env.Karmada, after, claimedBy[*workv1alpha2.ResourceBinding]("z-second"))
}

func TestPolicyThatIsMadeAnewUnderItsNameTakesOverWithItsNewID(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "reborn")
	policy := policyFor(t, on(member1), template)
	env.Create(t, policy, template)
	before := propagated(t, env, template, member1)

	deleteObject(t, env.Karmada, policy)
	awaitGone(t, env.Karmada, policy)
	again := policyFor(t, on(member1), template)
	env.Create(t, again)
	id := await(t, env.Karmada, again, exists).Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	await(t, env.Karmada, template, func(c *corev1.ConfigMap) error {
		return same("id", id, c.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})
	after := await(t, env.Karmada, before, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(same("binding", before.UID, b.UID), same("id", id, b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]))
	})
	if old := before.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]; old == id {
		t.Errorf("the new policy has the id of the old one, %q", old)
	}
	awaitRest(t, env, again, template, after)
}

func TestTemplateThatLeavesTheLabelsOfItsPolicyIsReleasedAtOnce(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "relabelled")
	template.Labels = map[string]string{"tier": "front"}
	policy := policyFor(t, on(member1), template)
	policy.Spec.ResourceSelectors[0].Name = ""
	policy.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
	env.Create(t, policy, template)
	bound := propagated(t, env, template, member1)
	awaitEvent(t, env, template, corev1.EventTypeNormal, policyv1alpha1.EventReasonApplyPolicySucceed)

	began := clock.now()
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Labels["tier"] = "back" })
	await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap](""))
	await(t, env.Karmada, bound, claimedBy[*workv1alpha2.ResourceBinding](""))
	if took := clock.since(began); took > soon {
		t.Errorf("released after %s", took)
	}
	awaitEvent(t, env, template, corev1.EventTypeNormal, policyv1alpha1.EventReasonPolicyLost)
	awaitEvent(t, env, template, corev1.EventTypeWarning, policyv1alpha1.EventReasonApplyPolicyFailed)
	awaitRest(t, env, policy, template, bound)
	inMember(t, env, member1, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Labels["tier"] = "front" })
	await(t, env.Karmada, bound, claimedBy[*workv1alpha2.ResourceBinding]("relabelled"))
}

func TestObjectsOfSkippedNamespacesAreNotPropagated(t *testing.T) {
	env := shared(t)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kube-skipped-"}}
	cleanUp(t, env, system)
	env.Create(t, system)
	skipped := configMap(system.Name, "skipped")
	policy := clusterPolicyFor(t, env, on(member1), skipped, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}}, system)
	env.Create(t, policy, skipped)
	// What is created later is propagated: the others were looked at.
	marker := configMap(env.Namespace(t), "marker")
	env.Create(t, policyFor(t, on(member1), marker), marker)
	propagated(t, env, marker, member1)
	for _, object := range []client.Object{skipped, system, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}}} {
		await(t, env.Karmada, object, claimedBy[client.Object](""))
	}
	if err := absent(t.Context(), env.Karmada, bindingOf(t, skipped)); err != nil {
		t.Errorf("the binding of an object in a skipped namespace: %v", err)
	}
}

// gadgets is a kind of its own: other tests use the other one meanwhile.
func gadgets() *apiextensionsv1.CustomResourceDefinition {
	definition := widgets()
	definition.Name, definition.Spec.Group = "gadgets.example.org", "example.org"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	return definition
}

func TestKindsThatAppearAndGoAreFollowedWithoutDelay(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	template := func(name string) *unstructured.Unstructured {
		made := widget(namespace)
		made.SetAPIVersion("example.org/v1")
		made.SetKind("Gadget")
		made.SetName(name)
		return made
	}
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gadgets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Gadget"}},
			Placement:         on(member1),
		},
	})
	// A binding outlives the kind of its template, for the garbage collector cannot
	// ask for the template then. So each round has its own.
	for _, round := range []string{"new", "renewed"} {
		bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: round + "-gadget"}}
		definition := define(t, env.Karmada, gadgets())
		cleanUp(t, env, definition)
		began := clock.now()
		testenv.Eventually(t, "a kind that is "+round, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template(round)))
		})
		stored := await(t, env.Karmada, template(round), claimedBy[*unstructured.Unstructured]("gadgets"))
		await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
			return same("template", stored.GetUID(), b.Spec.Resource.UID)
		})
		if took := clock.since(began); took > soon {
			t.Errorf("objects of a kind that is %s are propagated after %s", round, took)
		}
		awaitRest(t, env, bound)
		deleteObject(t, env.Karmada, definition)
		awaitGone(t, env.Karmada, definition)
	}
}

func TestPolicyGoesAlthoughItsKindIsServedNoMore(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "beside")
	policy := policyFor(t, on(member1), template)
	policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "unknown.example.com/v1", Kind: "Unknown"})
	env.Create(t, policy, template)
	bound := propagated(t, env, template, member1)
	deleteObject(t, env.Karmada, policy)
	awaitGone(t, env.Karmada, policy)
	await(t, env.Karmada, template, claimedBy[*corev1.ConfigMap](""))
	await(t, env.Karmada, bound, claimedBy[*workv1alpha2.ResourceBinding](""))
}

func TestWishesOfAPolicyFollowItIntoTheBindingAndOutAgain(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "wished")
	policy := policyFor(t, on(member1), template)
	env.Create(t, policy, template)
	bound := propagated(t, env, template, member1)
	before := bound.Spec.DeepCopy()
	yes := true
	// Somebody else suspends scheduling; the policy has no say in that.
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	})
	tests := []struct {
		name string
		wish func(*policyv1alpha1.PropagationSpec)
		want func(*workv1alpha2.ResourceBindingSpec)
	}{
		{"resources are preserved", func(s *policyv1alpha1.PropagationSpec) { s.PreserveResourcesOnDeletion = &yes },
			func(s *workv1alpha2.ResourceBindingSpec) { s.PreserveResourcesOnDeletion = &yes }},
		{"all dispatching is suspended", func(s *policyv1alpha1.PropagationSpec) {
			s.Suspension = &policyv1alpha1.Suspension{Dispatching: &yes}
		}, func(s *workv1alpha2.ResourceBindingSpec) { s.Suspension.Dispatching = &yes }},
		{"dispatching to one cluster is suspended", func(s *policyv1alpha1.PropagationSpec) {
			s.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}}
		}, func(s *workv1alpha2.ResourceBindingSpec) {
			s.Suspension.Dispatching = nil
			s.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}
		}},
		{"conflicts are overwritten, dependencies follow", func(s *policyv1alpha1.PropagationSpec) {
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictOverwrite, true
		}, func(s *workv1alpha2.ResourceBindingSpec) {
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictOverwrite, true
		}},
		{"all is as it was", func(s *policyv1alpha1.PropagationSpec) {
			s.PreserveResourcesOnDeletion, s.Suspension = nil, nil
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictAbort, false
		}, func(s *workv1alpha2.ResourceBindingSpec) {
			s.PreserveResourcesOnDeletion = nil
			s.Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictAbort, false
		}},
	}
	want := before.DeepCopy()
	want.Suspension = &workv1alpha2.Suspension{Scheduling: &yes}
	for _, step := range tests {
		testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { step.wish(&p.Spec) })
		step.want(want)
		await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error { return same(step.name, want, &b.Spec) })
	}
	awaitRest(t, env, policy, template, bound)
}

func TestBindingOfAnotherSchedulerIsLeftToIt(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "foreign")
	policy := policyFor(t, on(member1), template)
	policy.Spec.SchedulerName = "another-scheduler"
	env.Create(t, policy, template)
	bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return same("scheduler", "another-scheduler", b.Spec.SchedulerName)
	})
	awaitRest(t, env, template, bound)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(same("clusters", 0, len(b.Spec.Clusters)), same("conditions", 0, len(b.Status.Conditions)))
	})
}

func TestBindingFollowsThePriorityClassOfItsPolicy(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "ranked")
	class := func(value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: template.Namespace + "-class"}, Value: value}
	}
	cleanUp(t, env, class(0))
	policy := policyFor(t, on(member1), template)
	policy.Spec.SchedulePriority = &policyv1alpha1.SchedulePriority{
		PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: class(0).Name,
	}
	env.Create(t, policy, template)
	awaitEvent(t, env, template, corev1.EventTypeWarning, policyv1alpha1.EventReasonApplyPolicyFailed)
	if err := absent(t.Context(), env.Karmada, bindingOf(t, template)); err != nil {
		t.Errorf("the binding without its priority: %v", err)
	}
	for _, value := range []int32{100, -5} {
		began := clock.now()
		env.Create(t, class(value))
		bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
			return same("priority", &workv1alpha2.SchedulePriority{Priority: value}, b.Spec.SchedulePriority)
		})
		if took := clock.since(began); took > soon {
			t.Errorf("the priority follows after %s", took)
		}
		awaitRest(t, env, template, bound)
		deleteObject(t, env.Karmada, class(value))
	}
}

func TestTemplateThatIsMadeAnewGetsANewBindingSoon(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "again")
	env.Create(t, policyFor(t, on(member1), template), template)
	before := propagated(t, env, template, member1)
	deleteObject(t, env.Karmada, template)
	again := configMap(template.Namespace, template.Name)
	again.Data["color"] = "green"
	env.Create(t, again)
	after := await(t, env.Karmada, before, func(b *workv1alpha2.ResourceBinding) error {
		return same("template", again.UID, b.Spec.Resource.UID)
	})
	if after.UID == before.UID {
		t.Error("the binding of the earlier template is used again")
	}
	inMember(t, env, member1, again, hasColor("green"))
	awaitRest(t, env, again, after)
}

func TestSecondTemplateThatNeedsABindingOfTheSameNameIsTold(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	// The names of bindings do not tell groups apart.
	definition := gadgets()
	definition.Name, definition.Spec.Group = "jobs.example.net", "example.net"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: "ConfigMap", ListKind: "ConfigMapList"}
	cleanUp(t, env, define(t, env.Karmada, definition))
	holder := configMap(namespace, "wheel")
	env.Create(t, policyFor(t, on(member1), holder), holder)
	bound := propagated(t, env, holder, member1)

	rival := widget(namespace)
	rival.SetAPIVersion("example.net/v1")
	rival.SetKind("ConfigMap")
	testenv.Eventually(t, "the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, rival.DeepCopy()))
	})
	policy := policyFor(t, on(member1), holder)
	policy.Name = "rival"
	policy.Spec.ResourceSelectors[0].APIVersion = "example.net/v1"
	env.Create(t, policy)
	awaitEvent(t, env, rival, corev1.EventTypeWarning, policyv1alpha1.EventReasonApplyPolicyFailed)
	awaitRest(t, env, rival, bound)
	await(t, env.Karmada, rival, claimedBy[*unstructured.Unstructured](""))
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error { return same("spec", bound.Spec, b.Spec) })

	deleteObject(t, env.Karmada, holder)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(same("template", "example.net/v1", b.Spec.Resource.APIVersion), claimedBy[client.Object]("rival")(b))
	})
}

func TestLazyPolicyWaitsForTheUserAlsoOverARestart(t *testing.T) {
	env := alone(t)
	early, late := configMap(env.Namespace(t), "early"), deployment("", "late", 1)
	late.Namespace = early.Namespace
	env.Create(t, early)
	marker := configMap(early.Namespace, "marker")
	env.Create(t, policyFor(t, on(member1), marker), marker)
	propagated(t, env, marker, member1)
	policy := policyFor(t, on(member1), early, late)
	policy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	env.Create(t, policy)

	// A template that was there before its policy is only claimed; one that comes
	// later is propagated.
	await(t, env.Karmada, early, claimedBy[*corev1.ConfigMap]("early"))
	env.Create(t, late)
	bound := propagated(t, env, late, member1)
	unpropagated := func(ctx context.Context) error { return absent(ctx, env.Karmada, bindingOf(t, early)) }
	onlyIn := func(clusters ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			fresh := bindingOf(t, late)
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(fresh), fresh); err != nil {
				return err
			}
			return names(clusters...)(fresh)
		}
	}
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = on(member2) })
	testenv.Holds(t, "a change of the policy waits", quiet, onlyIn(member1))
	restart(t, env)
	again := configMap(early.Namespace, "again")
	env.Create(t, policyFor(t, on(member1), again), again)
	propagated(t, env, again, member1)
	testenv.Holds(t, "a change of the policy waits over a restart", quiet, onlyIn(member1))
	testenv.Holds(t, "what was only claimed waits over a restart", quiet, unpropagated)
	awaitRest(t, env, early, late, policy, bound)

	testenv.Update(t, env.Karmada, late, func(d *appsv1.Deployment) { d.Annotations["touched"] = "yes" })
	propagated(t, env, late, member2)
	testenv.Update(t, env.Karmada, early, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	propagated(t, env, early, member2)
	inMember(t, env, member2, early, hasColor("green"))
}
