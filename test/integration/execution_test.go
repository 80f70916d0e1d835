package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// quiet is how long a test watches that something does not happen.
const quiet = 500 * time.Millisecond

// condition compares a condition's status and reason and what its message begins
// with.
func condition(list []metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) error {
	found := meta.FindStatusCondition(list, kind)
	if found == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	if found.Status != status || found.Reason != reason || !strings.HasPrefix(found.Message, message) {
		return fmt.Errorf("%s is %s %s %q, want %s %s %q", kind, found.Status, found.Reason, found.Message, status, reason, message)
	}
	return nil
}

func applied(w *workv1alpha1.Work) error {
	return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue, "AppliedSuccessful", "Manifest has been successfully applied")
}

func replicas(want int32) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error { return same("replicas", want, *d.Spec.Replicas) }
}

func TestWhatIsChangedInAMemberIsRepaired(t *testing.T) {
	env := shared(t)
	for name, c := range map[string]struct {
		meddle func(*appsv1.Deployment)
		check  func(*appsv1.Deployment) error
	}{
		"the spec": {
			func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 },
			replicas(2),
		},
		"a label of the template": {
			func(d *appsv1.Deployment) { d.Labels["app"] = "other" },
			func(d *appsv1.Deployment) error { return same("label", "web", d.Labels["app"]) },
		},
		"a label of the template that is removed": {
			func(d *appsv1.Deployment) { delete(d.Labels, "app") },
			func(d *appsv1.Deployment) error { return same("label", "web", d.Labels["app"]) },
		},
		"but what a member adds of its own stays": {
			func(d *appsv1.Deployment) { d.Labels["own"], *d.Spec.Replicas = "yes", 7 },
			func(d *appsv1.Deployment) error {
				return errors.Join(same("label", "yes", d.Labels["own"]), same("replicas", int32(2), *d.Spec.Replicas))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := deployment(env.Namespace(t), "web", 2)
			env.Create(t, policyFor(t, on(member1), template), template)
			await(t, env.Karmada, workOf(t, member1, template), applied)
			made := inMember(t, env, member1, template, replicas(2))
			testenv.Update(t, member(env, member1), made, c.meddle)
			inMember(t, env, member1, template, c.check)
		})
	}
}

func TestWhatIsDeletedInAMemberComesBack(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	env.Create(t, policyFor(t, on(member1), template), template)
	await(t, env.Karmada, workOf(t, member1, template), applied)
	made := inMember(t, env, member1, template, exists)
	deleteObject(t, member(env, member1), made)
	again := inMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		if d.UID == made.UID {
			return errors.New("it is not deleted yet")
		}
		return nil
	})
	if *again.Spec.Replicas != 2 {
		t.Errorf("it came back with %d replicas", *again.Spec.Replicas)
	}
}

func TestLabelThatLeavesTheTemplateLeavesTheMember(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "labelled")
	template.Labels = map[string]string{"stays": "1", "goes": "1"}
	env.Create(t, policyFor(t, on(member1), template), template)
	made := inMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return same("label", "1", c.Labels["goes"]) })
	testenv.Update(t, member(env, member1), made, func(c *corev1.ConfigMap) { c.Labels["own"] = "1" })
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { delete(c.Labels, "goes") })
	inMember(t, env, member1, template, func(c *corev1.ConfigMap) error {
		return errors.Join(same("goes", "", c.Labels["goes"]), same("stays", "1", c.Labels["stays"]), same("own", "1", c.Labels["own"]))
	})
}

func TestObjectThatIsThereAlreadyIsLeftAloneUnlessToldToOverwrite(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "theirs")
	namespaceIn(t, env, member1, template.Namespace)
	foreign := configMap(template.Namespace, template.Name)
	foreign.Data["color"] = "red"
	if err := member(env, member1).Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	policy := policyFor(t, on(member1, member2), template)
	env.Create(t, policy, template)

	refusal := fmt.Sprintf("Failed to apply all manifests (0/1): resource(kind=ConfigMap, %s/theirs) already exists in the cluster member1 and the "+
		"work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource", template.Namespace)
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", refusal)
	})
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if err := condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", ""); err != nil {
			return err
		}
		if len(b.Status.AggregatedStatus) != 2 || b.Status.AggregatedStatus[0].Applied || !b.Status.AggregatedStatus[1].Applied {
			return fmt.Errorf("aggregated status is %+v", b.Status.AggregatedStatus)
		}
		return same("message", true, strings.HasPrefix(b.Status.AggregatedStatus[0].AppliedMessage, refusal))
	})
	inMember(t, env, member1, template, hasColor("red"))
	inMember(t, env, member2, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	})
	taken := inMember(t, env, member1, template, hasColor("blue"))
	if taken.UID != foreign.UID {
		t.Error("the object was replaced instead of changed")
	}
	await(t, env.Karmada, workOf(t, member1, template), applied)
}

// A member allocates ports and addresses before it compares names, so it does not say
// that the Service exists.
func TestServiceWhosePortAndAddressAreItsOwnIsTakenOver(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	namespaceIn(t, env, member2, namespace)
	there := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "before"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	if err := member(env, member2).Create(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	manifest := func(resolution string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"%s","name":"web","annotations":{"%s":"%s"},"labels":{"%s":"%s"}},`+
			`"spec":{"type":"NodePort","clusterIP":"%s","selector":{"app":"after"},"ports":[{"name":"http","port":80,"targetPort":8080,"nodePort":%d}]}}`,
			namespace, workv1alpha2.ResourceConflictResolutionAnnotation, resolution,
			workv1alpha1.ManagedByKarmadaLabel, workv1alpha1.ManagedByKarmadaLabelValue, there.Spec.ClusterIP, there.Spec.Ports[0].NodePort)
	}
	of := manual(t, env, member2, namespace+"-web", manifest("abort"))
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed",
			fmt.Sprintf("Failed to apply all manifests (0/1): resource(kind=Service, %s/web) already exists in the cluster member2", namespace))
	})
	testenv.Update(t, env.Karmada, of, func(w *workv1alpha1.Work) {
		w.Spec.Workload.Manifests[0].Raw = []byte(manifest(workv1alpha2.ResourceConflictResolutionOverwrite))
	})
	inMember(t, env, member2, there.DeepCopy(), func(s *corev1.Service) error {
		return errors.Join(same("selector", "after", s.Spec.Selector["app"]), same("UID", there.UID, s.UID),
			same("ports", there.Spec.Ports, s.Spec.Ports), same("address", there.Spec.ClusterIP, s.Spec.ClusterIP))
	})
	await(t, env.Karmada, of, applied)
}

func TestObjectThatWasNeverOursSurvivesItsTemplate(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "theirs")
	namespaceIn(t, env, member1, template.Namespace)
	foreign := configMap(template.Namespace, template.Name)
	if err := member(env, member1).Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	env.Create(t, policyFor(t, on(member1), template), template)
	of := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "")
	})
	deleteObject(t, env.Karmada, template)
	awaitGone(t, env.Karmada, of)
	inMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return same("uid", foreign.UID, c.UID) })
}

func TestWhatAMemberAssignsToAServiceIsRetained(t *testing.T) {
	env := shared(t)
	template := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeNodePort,
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	env.Create(t, policyFor(t, on(member1), template), template)
	made := inMember(t, env, member1, template, exists)
	if made.Spec.ClusterIP == "" {
		t.Fatal("the member assigned no address")
	}
	testenv.Update(t, env.Karmada, template, func(s *corev1.Service) { s.Spec.Selector["app"] = "next" })
	inMember(t, env, member1, template, func(s *corev1.Service) error {
		return errors.Join(
			same("selector", "next", s.Spec.Selector["app"]),
			same("address", made.Spec.ClusterIP, s.Spec.ClusterIP))
	})
	await(t, env.Karmada, workOf(t, member1, template), applied)
}

func TestDeletedTemplateLeavesNothingBehind(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	for _, cluster := range []string{member1, member2} {
		inMember(t, env, cluster, template, exists)
	}
	deleteObject(t, env.Karmada, template)
	for _, cluster := range []string{member1, member2} {
		awaitGone(t, member(env, cluster), template)
		awaitGone(t, env.Karmada, workOf(t, cluster, template))
	}
	awaitGone(t, env.Karmada, bindingOf(t, template))
}

func TestPreservedObjectStaysWithoutMarks(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "kept")
	template.Labels = map[string]string{"mine": "yes"}
	policy, preserve := policyFor(t, on(member1), template), true
	policy.Spec.PreserveResourcesOnDeletion = &preserve
	env.Create(t, policy, template)
	made := inMember(t, env, member1, template, exists)
	of := await(t, env.Karmada, workOf(t, member1, template), applied)

	deleteObject(t, env.Karmada, template)
	awaitGone(t, env.Karmada, of)
	inMember(t, env, member1, template, func(c *corev1.ConfigMap) error {
		return errors.Join(
			same("uid", made.UID, c.UID),
			same("labels", map[string]string{"mine": "yes"}, c.Labels),
			same("number of annotations", 0, len(c.Annotations)))
	})
}

func TestSuspendedDispatchingFreezesTheMembers(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "frozen")
	policy := policyFor(t, on(member1, member2), template)
	policy.Spec.Suspension = &policyv1alpha1.Suspension{
		DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}},
	}
	env.Create(t, policy, template)
	inMember(t, env, member1, template, hasColor("blue"))
	of := await(t, env.Karmada, workOf(t, member2, template), func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching",
			"Work dispatching is in a suspended state.")
	})
	testenv.Holds(t, "nothing in a suspended cluster", quiet, func(ctx context.Context) error {
		return absent(ctx, member(env, member2), template)
	})

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return errors.Join(applied(w), condition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionTrue,
			"Dispatching", "Work is being dispatched to member clusters."))
	})
	made := inMember(t, env, member2, template, hasColor("blue"))

	suspend(t, env, policy)
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})
	testenv.Update(t, member(env, member2), made, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	testenv.Holds(t, "no repair in a suspended cluster", quiet, func(ctx context.Context) error {
		stored := configMap(template.Namespace, template.Name)
		if err := member(env, member2).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		return hasColor("red")(stored)
	})
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
	inMember(t, env, member1, template, hasColor("green"))
	inMember(t, env, member2, template, hasColor("green"))
}

func TestAClusterToWhichChangesAreHeldBackHasWhatItHas(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "held")
	policy := policyFor(t, on(member1, member2), template)
	env.Create(t, policy, template)
	inMember(t, env, member2, template, hasColor("blue"))
	bound := bindingOf(t, template)
	// That it was applied may not be told yet.
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}}
	})
	says := func(message string) func(*workv1alpha2.ResourceBinding) error {
		return func(b *workv1alpha2.ResourceBinding) error {
			told := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
			if told == nil {
				return errors.New("it says nothing yet")
			}
			return errors.Join(same("message", message, told.Message), current(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation))
		}
	}
	// That nothing changes for a while is no change.
	await(t, env.Karmada, bound, says(workv1alpha2.FullyAppliedSuccessMessage+"; "+member2+": dispatching is suspended"))
	await(t, env.Karmada, bound, fullyApplied)

	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	inMember(t, env, member1, template, hasColor("green"))
	await(t, env.Karmada, bound, says("Dispatching is suspended for "+member2+": the present version is not applied"))

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
	await(t, env.Karmada, bound, fullyApplied)
	inMember(t, env, member2, template, hasColor("green"))
}

func TestScaledTemplateIsScaledInTheMembers(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	env.Create(t, policyFor(t, divided(map[string]int64{member1: 1, member2: 1}), template), template)
	inMember(t, env, member1, template, replicas(1))
	inMember(t, env, member2, template, replicas(1))
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { *d.Spec.Replicas = 6 })
	inMember(t, env, member1, template, replicas(3))
	inMember(t, env, member2, template, replicas(3))
}

func TestClusterThatLeavesThePlacementLosesTheObject(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "moving")
	policy := policyFor(t, on(member1, member2), template)
	env.Create(t, policy, template)
	inMember(t, env, member1, template, exists)
	inMember(t, env, member2, template, exists)
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = on(member2, member3) })
	inMember(t, env, member3, template, exists)
	awaitGone(t, member(env, member1), template)
	awaitGone(t, env.Karmada, workOf(t, member1, template))
	inMember(t, env, member2, template, exists)
}

func TestChangeThatAMemberRefusesIsToldAndHealsWhenItIsTakenBack(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "fixed")
	immutable := true
	template.Immutable = &immutable
	env.Create(t, policyFor(t, on(member1), template), template)
	made := inMember(t, env, member1, template, hasColor("blue"))
	of := await(t, env.Karmada, workOf(t, member1, template), applied)

	// The control plane refuses to change an immutable template too; an override
	// brings the change to the member alone.
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec:       overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, setting(t, "/data/color", "red")),
	}
	env.Create(t, override)
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed",
			"Failed to apply all manifests (0/1): ")
	})
	deleteObject(t, env.Karmada, override)
	await(t, env.Karmada, of, applied)
	inMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return same("uid", made.UID, c.UID) })
}

// manual is a Work that a user makes for a member.
func manual(t testing.TB, env *testenv.Env, cluster, name string, manifests ...string) *workv1alpha1.Work {
	t.Helper()
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(cluster), Name: name}}
	for _, manifest := range manifests {
		of.Spec.Workload.Manifests = append(of.Spec.Workload.Manifests, workv1alpha1.Manifest{
			RawExtension: runtime.RawExtension{Raw: []byte(manifest)},
		})
	}
	env.Create(t, of)
	cleanUp(t, env, of)
	return of
}

func TestManifestOfAKindThatTheMemberLacksWaitsForItAndHoldsUpNoOther(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	namespaceIn(t, env, member2, namespace)
	kind := strings.ToUpper(namespace[:1]) + strings.ReplaceAll(namespace[1:], "-", "")
	group := strings.ToLower(kind) + ".example.org"
	of := manual(t, env, member2, namespace+"-mixed",
		fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s","metadata":{"namespace":"%s","name":"late"},"spec":{"size":3}}`, group, kind, namespace),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"%s","name":"early"},"data":{"color":"blue","empty":null}}`, namespace))
	early := configMap(namespace, "early")
	await(t, member(env, member2), early, hasColor("blue"))
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed",
			fmt.Sprintf("Failed to apply all manifests (1/2): applying %s %s/late in cluster member2: ", kind, namespace))
	})

	plural := strings.ToLower(kind) + "s"
	if err := member(env, member2).Create(t.Context(), definition(group, kind, plural)); err != nil {
		t.Fatal(err)
	}
	late := &unstructured.Unstructured{}
	late.SetAPIVersion(group + "/v1")
	late.SetKind(kind)
	late.SetNamespace(namespace)
	late.SetName("late")
	testenv.Eventually(t, "the object of the kind that came late", func(ctx context.Context) error {
		return member(env, member2).Get(ctx, client.ObjectKeyFromObject(late), late)
	})
	await(t, env.Karmada, of, applied)
}

// definition defines a kind of namespaced objects of any content.
func definition(group, kind, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

func TestTwoWorksForOneObjectDoNotFight(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	namespaceIn(t, env, member1, namespace)
	manifest := func(color, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"%s","name":"one","labels":{"karmada.io/managed":"true"},`+
			`"annotations":{"work.karmada.io/namespace":"karmada-es-member1","work.karmada.io/name":"%s-%s"%s}},"data":{"color":"%s"}}`,
			namespace, namespace, color, more, color)
	}
	first := manual(t, env, member1, namespace+"-blue", manifest("blue", ""))
	first = await(t, env.Karmada, first, applied)
	second := manual(t, env, member1, namespace+"-red", manifest("red", ""))
	await(t, env.Karmada, second, func(w *workv1alpha1.Work) error {
		found := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
		if found == nil || found.Status != metav1.ConditionFalse {
			return fmt.Errorf("it is applied: %+v", found)
		}
		owner := fmt.Sprintf("it belongs to Work karmada-es-member1/%s (permanent id %s)", first.Name, first.Labels[workv1alpha1.WorkPermanentIDLabel])
		return same("owner named", true, strings.Contains(found.Message, owner))
	})
	object := configMap(namespace, "one")
	await(t, member(env, member1), object, hasColor("blue"))

	// The end of the Work that never had the object leaves it where it is.
	deleteObject(t, env.Karmada, second)
	awaitGone(t, env.Karmada, second)
	await(t, member(env, member1), object, hasColor("blue"))

	// One that is told to overwrite takes the object over, and with it its end.
	third := manual(t, env, member1, namespace+"-green", manifest("green", `,"work.karmada.io/conflict-resolution":"overwrite"`))
	await(t, env.Karmada, third, applied)
	await(t, member(env, member1), object, hasColor("green"))
	await(t, env.Karmada, first, exists)
	deleteObject(t, env.Karmada, first)
	awaitGone(t, env.Karmada, first)
	await(t, member(env, member1), object, hasColor("green"))
}

func TestObjectThatLosesTheManagedLabelIsLeftAloneUntilItIsBack(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "labelled")
	env.Create(t, policyFor(t, on(member1), template), template)
	of := await(t, env.Karmada, workOf(t, member1, template), applied)
	label := workv1alpha1.ManagedByKarmadaLabel
	made := inMember(t, env, member1, template, exists)
	testenv.Update(t, member(env, member1), made, func(c *corev1.ConfigMap) { delete(c.Labels, label); c.Data["color"] = "red" })
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "Failed to apply all manifests (0/1): resource(kind=ConfigMap")
	})
	inMember(t, env, member1, template, hasColor("red"))
	testenv.Update(t, member(env, member1), made, func(c *corev1.ConfigMap) { c.Labels[label] = "true" })
	inMember(t, env, member1, template, hasColor("blue"))
	await(t, env.Karmada, of, applied)
}

func TestFightWithAControllerOfTheMemberBecomesSlowAndIsTold(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "contested")
	env.Create(t, policyFor(t, on(member1), template), template)
	of := await(t, env.Karmada, workOf(t, member1, template), applied)
	giveIn := tunes(t, client.WithFieldOwner(member(env, member1), "tuner"), template)
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		if err := condition(w.Status.Conditions, workv1alpha1.WorkDriftContested, metav1.ConditionTrue, "RepairsDoNotLast", "ConfigMap "+template.Namespace); err != nil {
			return err
		}
		told := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDriftContested)
		return errors.Join(applied(w), same("tuner named", true, strings.Contains(told.Message, `field manager "tuner"`)))
	})
	giveIn()
	inMember(t, env, member1, template, hasColor("blue"))
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		return condition(w.Status.Conditions, workv1alpha1.WorkDriftContested, metav1.ConditionFalse, "RepairsLast", "")
	})
}

// tunes changes an object in a member, again after each repair, until the returned
// function or the test ends that: what is told of a fight does not outlast it long.
func tunes(t testing.TB, side client.Client, template *corev1.ConfigMap) (giveIn func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			made := configMap(template.Namespace, template.Name)
			if side.Get(ctx, client.ObjectKeyFromObject(made), made) == nil && made.Data["color"] != "red" {
				made.Data["color"] = "red"
				// One that comes too late is made again.
				_ = side.Update(ctx, made)
			}
			return false, nil
		})
	}()
	giveIn = func() {
		cancel()
		<-ended
	}
	t.Cleanup(giveIn)
	return giveIn
}

// This test takes a member from those that the control plane pushes to, so it runs
// alone.
func TestClusterThatPullsIsLeftToItsAgent(t *testing.T) {
	env := alone(t)
	template := configMap(env.Namespace(t), "switched")
	env.Create(t, policyFor(t, on(member3), template), template)
	await(t, env.Karmada, workOf(t, member3, template), applied)
	made := inMember(t, env, member3, template, exists)
	mode := func(to clusterv1alpha1.ClusterSyncMode) {
		t.Helper()
		testenv.Update(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = to })
	}
	mode(clusterv1alpha1.Pull)
	t.Cleanup(func() {
		await(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) error {
			return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady", "")
		})
	})
	t.Cleanup(func() {
		testenv.Update(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push })
	})
	// The switch is seen when changes of the template stay away.
	color := func(t testing.TB, of string) {
		testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = of })
		await(t, env.Karmada, workOf(t, member3, template), func(w *workv1alpha1.Work) error {
			manifest, err := manifestOf(w)
			if err != nil {
				return err
			}
			got, _, err := unstructured.NestedString(manifest.Object, "data", "color")
			return errors.Join(err, same("color", of, got))
		})
	}
	color(t, "green")
	// Who repairs may hear of the switch after what was changed before it.
	testenv.Eventually(t, "nothing is repaired in a cluster that pulls", func(ctx context.Context) error {
		testenv.Update(t, member(env, member3), made, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
		return testenv.Held(ctx, quiet, func(ctx context.Context) error {
			stored := configMap(template.Namespace, template.Name)
			if err := member(env, member3).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			return hasColor("red")(stored)
		})
	})
	mode(clusterv1alpha1.Push)
	inMember(t, env, member3, template, hasColor("green"))
	await(t, env.Karmada, workOf(t, member3, template), applied)
}

// suspend keeps changes from all clusters.
func suspend(t testing.TB, env *testenv.Env, policy *policyv1alpha1.PropagationPolicy) {
	t.Helper()
	all := true
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: &all}
	})
}

// namespaceIn waits until a namespace has reached a member.
func namespaceIn(t testing.TB, env *testenv.Env, cluster, name string) {
	t.Helper()
	await(t, member(env, cluster), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, exists)
}
