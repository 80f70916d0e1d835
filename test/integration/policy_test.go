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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/testenv"
)

// maxReactionDelay is the longest time for reactions to watch events. It is shorter than all
// resync intervals.
const maxReactionDelay = 20 * time.Second

// isClaimedBy checks that the policy with this name claims the object; an empty name means no
// policy.
func isClaimedBy[T client.Object](name string) func(T) error {
	return func(object T) error {
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		return errors.Join(
			checkEqual("claim", name, annotations[policyv1alpha1.PropagationPolicyNameAnnotation]+annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]),
			checkEqual("has a permanent ID", name != "",
				labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]+labels[policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel] != ""))
	}
}

// awaitUnchanged waits until objects of the control plane are not written any more. It fails
// the test if a loop writes without end.
func awaitUnchanged(t testing.TB, env *testenv.Env, objects ...client.Object) {
	t.Helper()
	versions := func(ctx context.Context) (all string, err error) {
		for _, object := range objects {
			fresh := emptyObject(object)
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(object), fresh); err != nil {
				return "", err
			}
			all += fmt.Sprintf("%T %s is at %s; ", object, object.GetName(), fresh.GetResourceVersion())
		}
		return all, nil
	}
	last, since := "", clock.now()
	testenv.Eventually(t, "no more writes", func(ctx context.Context) error {
		now, err := versions(ctx)
		if err != nil {
			return err
		}
		if now != last {
			last, since = now, clock.now()
		}
		if clock.since(since) < quietPeriod {
			return errors.New(now)
		}
		return nil
	})
}

// awaitPropagated waits until the members have the template and its binding is not written any
// more. It returns the binding.
func awaitPropagated(t testing.TB, env *testenv.Env, template client.Object, clusters ...string) *workv1alpha2.ResourceBinding {
	t.Helper()
	for _, cluster := range clusters {
		awaitInMember(t, env, cluster, template, exists)
	}
	rb := await(t, env.Karmada, bindingOf(t, template), hasClusters(clusters...))
	awaitUnchanged(t, env, template, rb)
	return await(t, env.Karmada, rb, exists)
}

func TestTemplateReclaimedByAnotherPolicyKeepsItsBinding(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "swapped")
	first, second := policyFor(t, placementOn(member1), template), policyFor(t, placementOn(member1, member2), template)
	second.Name = "z-second"
	env.Create(t, first, second, template)
	rb := awaitPropagated(t, env, template, member1)
	await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap]("swapped"))
	created := awaitInMember(t, env, member1, template, exists)

	testenv.Update(t, env.Karmada, first, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ResourceSelectors[0].Name = "something-else"
	})
	after := awaitPropagated(t, env, template, member1, member2)
	await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap]("z-second"))
	kept := awaitInMember(t, env, member1, template, exists)
	if err := errors.Join(
		isClaimedBy[*workv1alpha2.ResourceBinding]("z-second")(after),
		checkEqual("binding", rb.UID, after.UID), checkEqual("object in the member", created.UID, kept.UID),
	); err != nil {
		t.Error(err)
	}

	// The first policy matches again and is preferred by its name. But the policy that claims a
	// template keeps it.
	testenv.Update(t, env.Karmada, first, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ResourceSelectors[0].Name = template.Name
	})
	awaitUnchanged(t, env, first, second, template, after)
	await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap]("z-second"))
	await(t, env.Karmada, after, isClaimedBy[*workv1alpha2.ResourceBinding]("z-second"))
}

func TestRecreatedPolicyClaimsItsTemplatesWithItsNewID(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "reborn")
	policy := policyFor(t, placementOn(member1), template)
	env.Create(t, policy, template)
	before := awaitPropagated(t, env, template, member1)

	deleteObject(t, env.Karmada, policy)
	awaitGone(t, env.Karmada, policy)
	recreated := policyFor(t, placementOn(member1), template)
	env.Create(t, recreated)
	id := await(t, env.Karmada, recreated, exists).Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	await(t, env.Karmada, template, func(c *corev1.ConfigMap) error {
		return checkEqual("id", id, c.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})
	after := await(t, env.Karmada, before, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(checkEqual("binding", before.UID, b.UID), checkEqual("id", id, b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]))
	})
	if old := before.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]; old == id {
		t.Errorf("the new policy has the permanent ID %q of the old one", old)
	}
	awaitUnchanged(t, env, recreated, template, after)
}

func TestTemplateThatNoLongerMatchesIsUnclaimedPromptly(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "relabelled")
	template.Labels = map[string]string{"tier": "front"}
	policy := policyFor(t, placementOn(member1), template)
	policy.Spec.ResourceSelectors[0].Name = ""
	policy.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}
	env.Create(t, policy, template)
	rb := awaitPropagated(t, env, template, member1)
	awaitEvent(t, env, template, corev1.EventTypeNormal, policyv1alpha1.EventReasonApplyPolicySucceed)

	began := clock.now()
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Labels["tier"] = "back" })
	await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap](""))
	await(t, env.Karmada, rb, isClaimedBy[*workv1alpha2.ResourceBinding](""))
	if duration := clock.since(began); duration > maxReactionDelay {
		t.Errorf("unclaimed after %s", duration)
	}
	awaitEvent(t, env, template, corev1.EventTypeNormal, policyv1alpha1.EventReasonPolicyLost)
	awaitEvent(t, env, template, corev1.EventTypeWarning, policyv1alpha1.EventReasonApplyPolicyFailed)
	awaitUnchanged(t, env, policy, template, rb)
	awaitInMember(t, env, member1, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Labels["tier"] = "front" })
	await(t, env.Karmada, rb, isClaimedBy[*workv1alpha2.ResourceBinding]("relabelled"))
}

func TestObjectsOfSkippedNamespacesAreNotPropagated(t *testing.T) {
	env := shared(t)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "kube-skipped-"}}
	cleanUp(t, env, system)
	env.Create(t, system)
	skipped := configMap(system.Name, "skipped")
	policy := clusterPolicyFor(t, env, placementOn(member1), skipped, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}}, system)
	env.Create(t, policy, skipped)
	// A template that is created later is propagated, so the others were reconciled.
	marker := configMap(env.Namespace(t), "marker")
	env.Create(t, policyFor(t, placementOn(member1), marker), marker)
	awaitPropagated(t, env, marker, member1)
	for _, object := range []client.Object{skipped, system, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-system"}}} {
		await(t, env.Karmada, object, isClaimedBy[client.Object](""))
	}
	if err := checkAbsent(t.Context(), env.Karmada, bindingOf(t, skipped)); err != nil {
		t.Errorf("the binding of an object in a skipped namespace: %v", err)
	}
}

// newGadgetCRD returns a CRD that differs from newWidgetCRD, because other tests use newWidgetCRD
// at the same time.
func newGadgetCRD() *apiextensionsv1.CustomResourceDefinition {
	definition := newWidgetCRD()
	definition.Name, definition.Spec.Group = "gadgets.example.org", "example.org"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"}
	return definition
}

func TestNewAndRecreatedKindsArePropagatedPromptly(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	template := func(name string) *unstructured.Unstructured {
		created := newWidget(namespace)
		created.SetAPIVersion("example.org/v1")
		created.SetKind("Gadget")
		created.SetName(name)
		return created
	}
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gadgets"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "example.org/v1", Kind: "Gadget"}},
			Placement:         placementOn(member1),
		},
	})
	// A binding remains after the deletion of the CRD, because the garbage collector cannot
	// read the template then. So each round has its own binding.
	for _, round := range []string{"new", "renewed"} {
		rb := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: round + "-gadget"}}
		definition := createCRD(t, env.Karmada, newGadgetCRD())
		cleanUp(t, env, definition)
		start := clock.now()
		testenv.Eventually(t, "an object of a kind that is "+round, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template(round)))
		})
		stored := await(t, env.Karmada, template(round), isClaimedBy[*unstructured.Unstructured]("gadgets"))
		await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
			return checkEqual("template", stored.GetUID(), b.Spec.Resource.UID)
		})
		if duration := clock.since(start); duration > maxReactionDelay {
			t.Errorf("objects of a kind that is %s are propagated after %s", round, duration)
		}
		awaitUnchanged(t, env, rb)
		deleteObject(t, env.Karmada, definition)
		awaitGone(t, env.Karmada, definition)
	}
}

func TestPolicyForAnUnservedKindIsDeleted(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "beside")
	policy := policyFor(t, placementOn(member1), template)
	policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: "unknown.example.com/v1", Kind: "Unknown"})
	env.Create(t, policy, template)
	rb := awaitPropagated(t, env, template, member1)
	deleteObject(t, env.Karmada, policy)
	awaitGone(t, env.Karmada, policy)
	await(t, env.Karmada, template, isClaimedBy[*corev1.ConfigMap](""))
	await(t, env.Karmada, rb, isClaimedBy[*workv1alpha2.ResourceBinding](""))
}

func TestBindingFollowsTheFieldsOfItsPolicy(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "wished")
	policy := policyFor(t, placementOn(member1), template)
	env.Create(t, policy, template)
	rb := awaitPropagated(t, env, template, member1)
	before := rb.Spec.DeepCopy()
	enabled := true
	// Another user suspends scheduling. The policy does not set this field.
	testenv.Update(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	})
	tests := []struct {
		name string
		wish func(*policyv1alpha1.PropagationSpec)
		want func(*workv1alpha2.ResourceBindingSpec)
	}{
		{"preserve resources on deletion", func(s *policyv1alpha1.PropagationSpec) { s.PreserveResourcesOnDeletion = &enabled },
			func(s *workv1alpha2.ResourceBindingSpec) { s.PreserveResourcesOnDeletion = &enabled }},
		{"suspend dispatching", func(s *policyv1alpha1.PropagationSpec) {
			s.Suspension = &policyv1alpha1.Suspension{Dispatching: &enabled}
		}, func(s *workv1alpha2.ResourceBindingSpec) { s.Suspension.Dispatching = &enabled }},
		{"suspend dispatching to one cluster", func(s *policyv1alpha1.PropagationSpec) {
			s.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}}
		}, func(s *workv1alpha2.ResourceBindingSpec) {
			s.Suspension.Dispatching = nil
			s.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}
		}},
		{"overwrite conflicts, propagate dependencies", func(s *policyv1alpha1.PropagationSpec) {
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictOverwrite, true
		}, func(s *workv1alpha2.ResourceBindingSpec) {
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictOverwrite, true
		}},
		{"reset all fields", func(s *policyv1alpha1.PropagationSpec) {
			s.PreserveResourcesOnDeletion, s.Suspension = nil, nil
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictAbort, false
		}, func(s *workv1alpha2.ResourceBindingSpec) {
			s.PreserveResourcesOnDeletion = nil
			s.Suspension = &workv1alpha2.Suspension{Scheduling: &enabled}
			s.ConflictResolution, s.PropagateDeps = policyv1alpha1.ConflictAbort, false
		}},
	}
	want := before.DeepCopy()
	want.Suspension = &workv1alpha2.Suspension{Scheduling: &enabled}
	for _, step := range tests {
		testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { step.wish(&p.Spec) })
		step.want(want)
		await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error { return checkEqual(step.name, want, &b.Spec) })
	}
	awaitUnchanged(t, env, policy, template, rb)
}

func TestBindingWithAnotherSchedulerIsNotScheduled(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "foreign")
	policy := policyFor(t, placementOn(member1), template)
	policy.Spec.SchedulerName = "another-scheduler"
	env.Create(t, policy, template)
	rb := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("scheduler", "another-scheduler", b.Spec.SchedulerName)
	})
	awaitUnchanged(t, env, template, rb)
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(checkEqual("clusters", 0, len(b.Spec.Clusters)), checkEqual("conditions", 0, len(b.Status.Conditions)))
	})
}

func TestBindingFollowsThePriorityClassOfItsPolicy(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "ranked")
	class := func(value int32) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: template.Namespace + "-class"}, Value: value}
	}
	cleanUp(t, env, class(0))
	policy := policyFor(t, placementOn(member1), template)
	policy.Spec.SchedulePriority = &policyv1alpha1.SchedulePriority{
		PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: class(0).Name,
	}
	env.Create(t, policy, template)
	awaitEvent(t, env, template, corev1.EventTypeWarning, policyv1alpha1.EventReasonApplyPolicyFailed)
	if err := checkAbsent(t.Context(), env.Karmada, bindingOf(t, template)); err != nil {
		t.Errorf("a binding without the priority: %v", err)
	}
	for _, value := range []int32{100, -5} {
		began := clock.now()
		env.Create(t, class(value))
		rb := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
			return checkEqual("priority", &workv1alpha2.SchedulePriority{Priority: value}, b.Spec.SchedulePriority)
		})
		if duration := clock.since(began); duration > maxReactionDelay {
			t.Errorf("the priority is updated after %s", duration)
		}
		awaitUnchanged(t, env, template, rb)
		deleteObject(t, env.Karmada, class(value))
	}
}

func TestRecreatedTemplateGetsANewBinding(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "again")
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	before := awaitPropagated(t, env, template, member1)
	deleteObject(t, env.Karmada, template)
	recreated := configMap(template.Namespace, template.Name)
	recreated.Data["color"] = "green"
	env.Create(t, recreated)
	after := await(t, env.Karmada, before, func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("template", recreated.UID, b.Spec.Resource.UID)
	})
	if after.UID == before.UID {
		t.Error("the new template has the binding of the deleted one")
	}
	awaitInMember(t, env, member1, recreated, hasColor("green"))
	awaitUnchanged(t, env, recreated, after)
}

// newOtherConfigMap returns a CRD of a kind ConfigMap in another group, and an object of this kind.
func newOtherConfigMap(namespace, name string) (*apiextensionsv1.CustomResourceDefinition, *unstructured.Unstructured) {
	definition := newGadgetCRD()
	definition.Name, definition.Spec.Group = "jobs.example.net", "example.net"
	definition.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "jobs", Singular: "job", Kind: "ConfigMap", ListKind: "ConfigMapList"}
	object := newWidget(namespace)
	object.SetAPIVersion("example.net/v1")
	object.SetKind("ConfigMap")
	object.SetName(name)
	return definition, object
}

// TestTemplatesWithOneBindingNameAreDelivered creates templates whose bindings and Works have the
// same usual name: ClusterRoles whose names differ in colons, dots and capital letters, and
// ConfigMaps of two API groups.
func TestTemplatesWithOneBindingNameAreDelivered(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	definition, other := newOtherConfigMap(namespace, "wheel")
	cleanUp(t, env, createCRD(t, env.Karmada, definition))
	createCRD(t, memberClient(env, member1), definition)
	first := []client.Object{configMap(namespace, "wheel"), newRole(namespace + ":view")}
	second := []client.Object{other, newRole(namespace + ".view"), newRole(namespace + ":View")}
	templates := slices.Concat(first, second)
	cleanUp(t, env, templates...)
	env.Create(t, append(first, clusterPolicyFor(t, env, placementOn(member1), templates...))...)
	for _, template := range first {
		awaitInMember(t, env, member1, template, exists)
	}
	testenv.Eventually(t, "creating an object of the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, other.DeepCopy()))
	})
	env.Create(t, second[1:]...)
	copies := awaitOwnBindings(t, env, templates)
	restartComponents(t, env)
	for _, template := range first {
		deleteObject(t, env.Karmada, template)
		awaitNotInMember(t, env, member1, template)
		awaitGone(t, env.Karmada, copies[template].bound)
	}
	for _, template := range second {
		testenv.Update(t, env.Karmada, template, func(o client.Object) { o.SetLabels(map[string]string{"changed": "yes"}) })
		awaitInMember(t, env, member1, template, func(o client.Object) error {
			return errors.Join(checkEqual("UID", copies[template].uid, o.GetUID()), checkEqual("label", "yes", o.GetLabels()["changed"]))
		})
	}
	for template, kept := range awaitOwnBindings(t, env, second) {
		if before := copies[template]; kept.uid != before.uid || kept.bound.GetUID() != before.bound.GetUID() {
			t.Errorf("the binding or the copy of %s was replaced", template.GetName())
		}
	}
}

func newRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// deliveredCopy is a binding with the UID of the member object of its template.
type deliveredCopy struct {
	bound binding.Object
	uid   types.UID
}

// awaitOwnBindings waits until each template has its own binding and a copy in member1, and checks
// that karmadactl trace shows this binding.
func awaitOwnBindings(t *testing.T, env *testenv.Env, templates []client.Object) map[client.Object]deliveredCopy {
	t.Helper()
	copies, names := map[client.Object]deliveredCopy{}, map[string]client.Object{}
	for _, template := range templates {
		copied := awaitInMember(t, env, member1, template, exists)
		selector := selectorOf(t, template)
		kind := schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind).GroupKind()
		bound, _, err := loop.FindTemplateBinding(t.Context(), env.Karmada, kind, client.ObjectKeyFromObject(template))
		if err != nil || bound == nil || bound.BindingSpec().Resource.UID != template.GetUID() && template.GetUID() != "" {
			t.Fatalf("%s has binding %v: %v", template.GetName(), bound, err)
		}
		if names[bound.GetName()] != nil {
			t.Errorf("%s and %s have one binding %s", template.GetName(), names[bound.GetName()].GetName(), bound.GetName())
		}
		names[bound.GetName()], copies[template] = template, deliveredCopy{bound, copied.GetUID()}
		stdout, stderr, err := runKarmadactl(t, env, "trace", strings.ToLower(selector.Kind)+"."+kind.Group, template.GetName(), "-n", template.GetNamespace())
		if !strings.Contains(stdout, bound.GetName()) {
			t.Errorf("trace of %s does not show binding %s: %v\n%s%s", template.GetName(), bound.GetName(), err, stdout, stderr)
		}
	}
	return copies
}

func TestLazyActivationWaitsForAChangeOfTheTemplateAcrossRestarts(t *testing.T) {
	env := alone(t)
	early, late := configMap(env.Namespace(t), "early"), deployment("", "late", 1)
	late.Namespace = early.Namespace
	env.Create(t, early)
	marker := configMap(early.Namespace, "marker")
	env.Create(t, policyFor(t, placementOn(member1), marker), marker)
	awaitPropagated(t, env, marker, member1)
	policy := policyFor(t, placementOn(member1), early, late)
	policy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	env.Create(t, policy)

	// A lazy policy only claims a template that existed before the policy. A template that is
	// created after the policy is propagated.
	await(t, env.Karmada, early, isClaimedBy[*corev1.ConfigMap]("early"))
	env.Create(t, late)
	rb := awaitPropagated(t, env, late, member1)
	checkEarlyUnbound := func(ctx context.Context) error { return checkAbsent(ctx, env.Karmada, bindingOf(t, early)) }
	checkLateIn := func(clusters ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			fresh := bindingOf(t, late)
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(fresh), fresh); err != nil {
				return err
			}
			return hasClusters(clusters...)(fresh)
		}
	}
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn(member2) })
	testenv.Holds(t, "a change of the policy is not applied", quietPeriod, checkLateIn(member1))
	restartComponents(t, env)
	secondMarker := configMap(early.Namespace, "again")
	env.Create(t, policyFor(t, placementOn(member1), secondMarker), secondMarker)
	awaitPropagated(t, env, secondMarker, member1)
	testenv.Holds(t, "a change of the policy is not applied after a restart", quietPeriod, checkLateIn(member1))
	testenv.Holds(t, "the claimed template is not propagated after a restart", quietPeriod, checkEarlyUnbound)
	awaitUnchanged(t, env, early, late, policy, rb)

	testenv.Update(t, env.Karmada, late, func(d *appsv1.Deployment) { d.Annotations["touched"] = "yes" })
	awaitPropagated(t, env, late, member2)
	testenv.Update(t, env.Karmada, early, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	awaitPropagated(t, env, early, member2)
	awaitInMember(t, env, member2, early, hasColor("green"))
}
