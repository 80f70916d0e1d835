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

// quietPeriod is how long a test checks that something does not happen.
const quietPeriod = 500 * time.Millisecond

// checkCondition compares the status, the reason and the beginning of the message of a
// condition.
func checkCondition(list []metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) error {
	found := meta.FindStatusCondition(list, kind)
	if found == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	if found.Status != status || found.Reason != reason || !strings.HasPrefix(found.Message, message) {
		return fmt.Errorf("%s is %s %s %q, want %s %s %q", kind, found.Status, found.Reason, found.Message, status, reason, message)
	}
	return nil
}

func isApplied(w *workv1alpha1.Work) error {
	return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionTrue, "AppliedSuccessful", "Manifest has been successfully applied")
}

func hasReplicas(want int32) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error { return checkEqual("replicas", want, *d.Spec.Replicas) }
}

func TestDriftInAMemberIsRepaired(t *testing.T) {
	env := shared(t)
	for name, c := range map[string]struct {
		change func(*appsv1.Deployment)
		check  func(*appsv1.Deployment) error
	}{
		"a field of the spec": {
			func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 },
			hasReplicas(2),
		},
		"a label of the template": {
			func(d *appsv1.Deployment) { d.Labels["app"] = "other" },
			func(d *appsv1.Deployment) error { return checkEqual("label", "web", d.Labels["app"]) },
		},
		"a removed label of the template": {
			func(d *appsv1.Deployment) { delete(d.Labels, "app") },
			func(d *appsv1.Deployment) error { return checkEqual("label", "web", d.Labels["app"]) },
		},
		"a label that the member added is kept": {
			func(d *appsv1.Deployment) { d.Labels["own"], *d.Spec.Replicas = "yes", 7 },
			func(d *appsv1.Deployment) error {
				return errors.Join(checkEqual("label", "yes", d.Labels["own"]), checkEqual("replicas", int32(2), *d.Spec.Replicas))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := deployment(env.Namespace(t), "web", 2)
			env.Create(t, policyFor(t, placementOn(member1), template), template)
			await(t, env.Karmada, workOf(t, member1, template), isApplied)
			created := awaitInMember(t, env, member1, template, hasReplicas(2))
			testenv.Update(t, memberClient(env, member1), created, c.change)
			awaitInMember(t, env, member1, template, c.check)
		})
	}
}

func TestDeletedMemberObjectIsRecreated(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	await(t, env.Karmada, workOf(t, member1, template), isApplied)
	created := awaitInMember(t, env, member1, template, exists)
	deleteObject(t, memberClient(env, member1), created)
	recreated := awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		if d.UID == created.UID {
			return errors.New("the object is not deleted yet")
		}
		return nil
	})
	if *recreated.Spec.Replicas != 2 {
		t.Errorf("the object is recreated with %d replicas", *recreated.Spec.Replicas)
	}
}

func TestLabelRemovedFromTheTemplateIsRemovedInTheMember(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "labelled")
	template.Labels = map[string]string{"stays": "1", "goes": "1"}
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	created := awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return checkEqual("label", "1", c.Labels["goes"]) })
	testenv.Update(t, memberClient(env, member1), created, func(c *corev1.ConfigMap) { c.Labels["own"] = "1" })
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { delete(c.Labels, "goes") })
	awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error {
		return errors.Join(checkEqual("goes", "", c.Labels["goes"]), checkEqual("stays", "1", c.Labels["stays"]), checkEqual("own", "1", c.Labels["own"]))
	})
}

func TestExistingObjectIsTakenOverOnlyWithConflictResolutionOverwrite(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "theirs")
	awaitNamespace(t, env, member1, template.Namespace)
	foreign := configMap(template.Namespace, template.Name)
	foreign.Data["color"] = "red"
	if err := memberClient(env, member1).Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	policy := policyFor(t, placementOn(member1, member2), template)
	env.Create(t, policy, template)

	conflictMessage := fmt.Sprintf("Failed to apply all manifests (0/1): resource(kind=ConfigMap, %s/theirs) already exists in the cluster member1 and the "+
		"work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource", template.Namespace)
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", conflictMessage)
	})
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if err := checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", ""); err != nil {
			return err
		}
		if len(b.Status.AggregatedStatus) != 2 || b.Status.AggregatedStatus[0].Applied || !b.Status.AggregatedStatus[1].Applied {
			return fmt.Errorf("the aggregated status is %+v", b.Status.AggregatedStatus)
		}
		return checkEqual("message", true, strings.HasPrefix(b.Status.AggregatedStatus[0].AppliedMessage, conflictMessage))
	})
	awaitInMember(t, env, member1, template, hasColor("red"))
	awaitInMember(t, env, member2, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	})
	takenOver := awaitInMember(t, env, member1, template, hasColor("blue"))
	if takenOver.UID != foreign.UID {
		t.Error("the object was replaced instead of changed")
	}
	await(t, env.Karmada, workOf(t, member1, template), isApplied)
}

// A Service of the member already has the name, the port and the address of the Service in the
// Work. An API server allocates ports and addresses before it compares names. So it rejects the
// creation of such a Service with another error than AlreadyExists.
func TestTakeoverOfAServiceKeepsItsNodePortAndClusterIP(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member2, namespace)
	existing := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "before"},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	if err := memberClient(env, member2).Create(t.Context(), existing); err != nil {
		t.Fatal(err)
	}
	manifest := func(resolution string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"%s","name":"web","annotations":{"%s":"%s"},"labels":{"%s":"%s"}},`+
			`"spec":{"type":"NodePort","clusterIP":"%s","selector":{"app":"after"},"ports":[{"name":"http","port":80,"targetPort":8080,"nodePort":%d}]}}`,
			namespace, workv1alpha2.ResourceConflictResolutionAnnotation, resolution,
			workv1alpha1.ManagedByKarmadaLabel, workv1alpha1.ManagedByKarmadaLabelValue, existing.Spec.ClusterIP, existing.Spec.Ports[0].NodePort)
	}
	memberWork := createWork(t, env, member2, namespace+"-web", manifest("abort"))
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed",
			fmt.Sprintf("Failed to apply all manifests (0/1): resource(kind=Service, %s/web) already exists in the cluster member2", namespace))
	})
	testenv.Update(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) {
		w.Spec.Workload.Manifests[0].Raw = []byte(manifest(workv1alpha2.ResourceConflictResolutionOverwrite))
	})
	awaitInMember(t, env, member2, existing.DeepCopy(), func(s *corev1.Service) error {
		return errors.Join(checkEqual("selector", "after", s.Spec.Selector["app"]), checkEqual("UID", existing.UID, s.UID),
			checkEqual("ports", existing.Spec.Ports, s.Spec.Ports), checkEqual("address", existing.Spec.ClusterIP, s.Spec.ClusterIP))
	})
	await(t, env.Karmada, memberWork, isApplied)
}

func TestUnmanagedObjectSurvivesTheDeletionOfItsTemplate(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "theirs")
	awaitNamespace(t, env, member1, template.Namespace)
	foreign := configMap(template.Namespace, template.Name)
	if err := memberClient(env, member1).Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "")
	})
	deleteObject(t, env.Karmada, template)
	awaitGone(t, env.Karmada, memberWork)
	awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return checkEqual("uid", foreign.UID, c.UID) })
}

func TestClusterIPAssignedByTheMemberIsRetained(t *testing.T) {
	env := shared(t)
	template := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeNodePort,
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	created := awaitInMember(t, env, member1, template, exists)
	if created.Spec.ClusterIP == "" {
		t.Fatal("the member assigned no address")
	}
	testenv.Update(t, env.Karmada, template, func(s *corev1.Service) { s.Spec.Selector["app"] = "next" })
	awaitInMember(t, env, member1, template, func(s *corev1.Service) error {
		return errors.Join(
			checkEqual("selector", "next", s.Spec.Selector["app"]),
			checkEqual("address", created.Spec.ClusterIP, s.Spec.ClusterIP))
	})
	await(t, env.Karmada, workOf(t, member1, template), isApplied)
}

func TestDeletionOfATemplateDeletesMemberObjectsWorksAndBinding(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	for _, cluster := range []string{member1, member2} {
		awaitInMember(t, env, cluster, template, exists)
	}
	deleteObject(t, env.Karmada, template)
	for _, cluster := range []string{member1, member2} {
		awaitGone(t, memberClient(env, cluster), template)
		awaitGone(t, env.Karmada, workOf(t, cluster, template))
	}
	awaitGone(t, env.Karmada, bindingOf(t, template))
}

func TestPreserveResourcesOnDeletionReleasesTheObject(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "kept")
	template.Labels = map[string]string{"mine": "yes"}
	policy, preserve := policyFor(t, placementOn(member1), template), true
	policy.Spec.PreserveResourcesOnDeletion = &preserve
	env.Create(t, policy, template)
	created := awaitInMember(t, env, member1, template, exists)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), isApplied)

	deleteObject(t, env.Karmada, template)
	awaitGone(t, env.Karmada, memberWork)
	awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error {
		return errors.Join(
			checkEqual("uid", created.UID, c.UID),
			checkEqual("labels", map[string]string{"mine": "yes"}, c.Labels),
			checkEqual("number of annotations", 0, len(c.Annotations)))
	})
}

func TestSuspendedDispatchingStopsApplyAndRepair(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "frozen")
	policy := policyFor(t, placementOn(member1, member2), template)
	policy.Spec.Suspension = &policyv1alpha1.Suspension{
		DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}},
	}
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, hasColor("blue"))
	memberWork := await(t, env.Karmada, workOf(t, member2, template), func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching",
			"Work dispatching is in a suspended state.")
	})
	testenv.Holds(t, "no object in a suspended cluster", quietPeriod, func(ctx context.Context) error {
		return checkAbsent(ctx, memberClient(env, member2), template)
	})

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return errors.Join(isApplied(w), checkCondition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionTrue,
			"Dispatching", "Work is being dispatched to member clusters."))
	})
	created := awaitInMember(t, env, member2, template, hasColor("blue"))

	suspendDispatching(t, env, policy)
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkDispatching, metav1.ConditionFalse, "SuspendDispatching", "")
	})
	testenv.Update(t, memberClient(env, member2), created, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	testenv.Holds(t, "no repair in a suspended cluster", quietPeriod, func(ctx context.Context) error {
		stored := configMap(template.Namespace, template.Name)
		if err := memberClient(env, member2).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
			return err
		}
		return hasColor("red")(stored)
	})
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
	awaitInMember(t, env, member1, template, hasColor("green"))
	awaitInMember(t, env, member2, template, hasColor("green"))
}

func TestSuspendedClusterIsReportedInFullyApplied(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "held")
	policy := policyFor(t, placementOn(member1, member2), template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member2, template, hasColor("blue"))
	rb := bindingOf(t, template)
	// FullyApplied may not be reported yet.
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}}
	})
	hasMessage := func(message string) func(*workv1alpha2.ResourceBinding) error {
		return func(b *workv1alpha2.ResourceBinding) error {
			fullyApplied := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
			if fullyApplied == nil {
				return errors.New("there is no condition FullyApplied yet")
			}
			return errors.Join(checkEqual("message", message, fullyApplied.Message), checkObservedGeneration(b.Status.Conditions, workv1alpha2.FullyApplied, b.Generation))
		}
	}
	// The suspension alone changes the message, but not the status of the condition.
	await(t, env.Karmada, rb, hasMessage(workv1alpha2.FullyAppliedSuccessMessage+"; "+member2+": dispatching is suspended"))
	await(t, env.Karmada, rb, isFullyApplied)

	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	awaitInMember(t, env, member1, template, hasColor("green"))
	await(t, env.Karmada, rb, hasMessage("Dispatching is suspended for "+member2+": the current version is not applied"))

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
	await(t, env.Karmada, rb, isFullyApplied)
	awaitInMember(t, env, member2, template, hasColor("green"))
}

func TestScalingATemplateScalesItInTheMembers(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	env.Create(t, policyFor(t, dividedPlacement(map[string]int64{member1: 1, member2: 1}), template), template)
	awaitInMember(t, env, member1, template, hasReplicas(1))
	awaitInMember(t, env, member2, template, hasReplicas(1))
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { *d.Spec.Replicas = 6 })
	awaitInMember(t, env, member1, template, hasReplicas(3))
	awaitInMember(t, env, member2, template, hasReplicas(3))
}

func TestObjectIsDeletedInAClusterRemovedFromThePlacement(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "moving")
	policy := policyFor(t, placementOn(member1, member2), template)
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, exists)
	awaitInMember(t, env, member2, template, exists)
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn(member2, member3) })
	awaitInMember(t, env, member3, template, exists)
	awaitGone(t, memberClient(env, member1), template)
	awaitGone(t, env.Karmada, workOf(t, member1, template))
	awaitInMember(t, env, member2, template, exists)
}

func TestChangeRejectedByAMemberIsReportedAndRecoversAfterRevert(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "fixed")
	immutable := true
	template.Immutable = &immutable
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	created := awaitInMember(t, env, member1, template, hasColor("blue"))
	memberWork := await(t, env.Karmada, workOf(t, member1, template), isApplied)

	// Change the object by an override, because the control plane rejects a change of an immutable
	// template. The override changes the object for the member only.
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec:       newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, replaceOverride(t, "/data/color", "red")),
	}
	env.Create(t, override)
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed",
			"Failed to apply all manifests (0/1): ")
	})
	deleteObject(t, env.Karmada, override)
	await(t, env.Karmada, memberWork, isApplied)
	awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error { return checkEqual("uid", created.UID, c.UID) })
}

// createWork creates a Work as a user does, without a template.
func createWork(t testing.TB, env *testenv.Env, cluster, name string, manifests ...string) *workv1alpha1.Work {
	t.Helper()
	memberWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(cluster), Name: name}}
	for _, manifest := range manifests {
		memberWork.Spec.Workload.Manifests = append(memberWork.Spec.Workload.Manifests, workv1alpha1.Manifest{
			RawExtension: runtime.RawExtension{Raw: []byte(manifest)},
		})
	}
	env.Create(t, memberWork)
	cleanUp(t, env, memberWork)
	return memberWork
}

func TestManifestOfAnUnservedKindWaitsForItsCRD(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member2, namespace)
	kind := strings.ToUpper(namespace[:1]) + strings.ReplaceAll(namespace[1:], "-", "")
	group := strings.ToLower(kind) + ".example.org"
	memberWork := createWork(t, env, member2, namespace+"-mixed",
		fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s","metadata":{"namespace":"%s","name":"late"},"spec":{"size":3}}`, group, kind, namespace),
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"%s","name":"early"},"data":{"color":"blue","empty":null}}`, namespace))
	served := configMap(namespace, "early")
	await(t, memberClient(env, member2), served, hasColor("blue"))
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed",
			fmt.Sprintf("Failed to apply all manifests (1/2): applying %s %s/late in cluster member2: ", kind, namespace))
	})

	plural := strings.ToLower(kind) + "s"
	if err := memberClient(env, member2).Create(t.Context(), newCRD(group, kind, plural)); err != nil {
		t.Fatal(err)
	}
	unserved := &unstructured.Unstructured{}
	unserved.SetAPIVersion(group + "/v1")
	unserved.SetKind(kind)
	unserved.SetNamespace(namespace)
	unserved.SetName("late")
	testenv.Eventually(t, "the object of the kind whose CRD is created later", func(ctx context.Context) error {
		return memberClient(env, member2).Get(ctx, client.ObjectKeyFromObject(unserved), unserved)
	})
	await(t, env.Karmada, memberWork, isApplied)
}

// newCRD returns a CustomResourceDefinition of a namespaced kind without a schema.
func newCRD(group, kind, plural string) *unstructured.Unstructured {
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

func TestTwoWorksWithTheSameObjectDoNotConflictRepeatedly(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member1, namespace)
	manifest := func(color, more string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"%s","name":"one","labels":{"karmada.io/managed":"true"},`+
			`"annotations":{"work.karmada.io/namespace":"karmada-es-member1","work.karmada.io/name":"%s-%s"%s}},"data":{"color":"%s"}}`,
			namespace, namespace, color, more, color)
	}
	first := createWork(t, env, member1, namespace+"-blue", manifest("blue", ""))
	first = await(t, env.Karmada, first, isApplied)
	second := createWork(t, env, member1, namespace+"-red", manifest("red", ""))
	await(t, env.Karmada, second, func(w *workv1alpha1.Work) error {
		found := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
		if found == nil || found.Status != metav1.ConditionFalse {
			return fmt.Errorf("the Work is applied: %+v", found)
		}
		owner := fmt.Sprintf("it belongs to Work karmada-es-member1/%s (permanent id %s)", first.Name, first.Labels[workv1alpha1.WorkPermanentIDLabel])
		return checkEqual("owner named", true, strings.Contains(found.Message, owner))
	})
	object := configMap(namespace, "one")
	await(t, memberClient(env, member1), object, hasColor("blue"))

	// The deletion of a Work that never owned the object keeps the object.
	deleteObject(t, env.Karmada, second)
	awaitGone(t, env.Karmada, second)
	await(t, memberClient(env, member1), object, hasColor("blue"))

	// A Work with conflict resolution "overwrite" takes the object over. From then on the
	// deletion of the first Work keeps the object.
	third := createWork(t, env, member1, namespace+"-green", manifest("green", `,"work.karmada.io/conflict-resolution":"overwrite"`))
	await(t, env.Karmada, third, isApplied)
	await(t, memberClient(env, member1), object, hasColor("green"))
	await(t, env.Karmada, first, exists)
	deleteObject(t, env.Karmada, first)
	awaitGone(t, env.Karmada, first)
	await(t, memberClient(env, member1), object, hasColor("green"))
}

func TestObjectWithoutTheManagedLabelIsNotRepaired(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "labelled")
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), isApplied)
	label := workv1alpha1.ManagedByKarmadaLabel
	created := awaitInMember(t, env, member1, template, exists)
	testenv.Update(t, memberClient(env, member1), created, func(c *corev1.ConfigMap) { delete(c.Labels, label); c.Data["color"] = "red" })
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", "Failed to apply all manifests (0/1): resource(kind=ConfigMap")
	})
	awaitInMember(t, env, member1, template, hasColor("red"))
	testenv.Update(t, memberClient(env, member1), created, func(c *corev1.ConfigMap) { c.Labels[label] = "true" })
	awaitInMember(t, env, member1, template, hasColor("blue"))
	await(t, env.Karmada, memberWork, isApplied)
}

func TestDriftConflictSlowsRepairsAndIsReported(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "contested")
	env.Create(t, policyFor(t, placementOn(member1), template), template)
	memberWork := await(t, env.Karmada, workOf(t, member1, template), isApplied)
	stop := startOverwriting(t, client.WithFieldOwner(memberClient(env, member1), "tuner"), template)
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		if err := checkCondition(w.Status.Conditions, workv1alpha1.WorkDriftConflict, metav1.ConditionTrue, "RepairsDoNotLast", "ConfigMap "+template.Namespace); err != nil {
			return err
		}
		conflict := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDriftConflict)
		return errors.Join(isApplied(w), checkEqual("field manager named", true, strings.Contains(conflict.Message, `field manager "tuner"`)))
	})
	stop()
	awaitInMember(t, env, member1, template, hasColor("blue"))
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return checkCondition(w.Status.Conditions, workv1alpha1.WorkDriftConflict, metav1.ConditionFalse, "RepairsLast", "")
	})
}

// startOverwriting changes an object in a member after each repair, until the returned function is
// called or the test ends. Karmada reports the drift conflict only while these changes continue.
func startOverwriting(t testing.TB, clusterClient client.Client, template *corev1.ConfigMap) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			created := configMap(template.Namespace, template.Name)
			if clusterClient.Get(ctx, client.ObjectKeyFromObject(created), created) == nil && created.Data["color"] != "red" {
				created.Data["color"] = "red"
				// A rejected update is repeated at the next poll.
				_ = clusterClient.Update(ctx, created)
			}
			return false, nil
		})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// The test needs an environment whose clusters may change: it switches member3 to pull mode.
func TestControlPlaneDoesNotDeliverToAPullModeCluster(t *testing.T) {
	env := alone(t)
	template := configMap(env.Namespace(t), "switched")
	env.Create(t, policyFor(t, placementOn(member3), template), template)
	await(t, env.Karmada, workOf(t, member3, template), isApplied)
	created := awaitInMember(t, env, member3, template, exists)
	setSyncMode := func(to clusterv1alpha1.ClusterSyncMode) {
		t.Helper()
		testenv.Update(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = to })
	}
	setSyncMode(clusterv1alpha1.Pull)
	t.Cleanup(func() {
		await(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) error {
			return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady", "")
		})
	})
	t.Cleanup(func() {
		testenv.Update(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push })
	})
	// The components have seen the new mode when changes of the template are not applied.
	setColor := func(t testing.TB, want string) {
		testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = want })
		await(t, env.Karmada, workOf(t, member3, template), func(w *workv1alpha1.Work) error {
			manifest, err := manifestOf(w)
			if err != nil {
				return err
			}
			got, _, err := unstructured.NestedString(manifest.Object, "data", "color")
			return errors.Join(err, checkEqual("color", want, got))
		})
	}
	setColor(t, "green")
	// The controller that repairs drift may see the new mode later than setColor returns. So create
	// drift again until the drift stays.
	testenv.Eventually(t, "no repair in a pull-mode cluster", func(ctx context.Context) error {
		testenv.Update(t, memberClient(env, member3), created, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
		return testenv.Held(ctx, quietPeriod, func(ctx context.Context) error {
			stored := configMap(template.Namespace, template.Name)
			if err := memberClient(env, member3).Get(ctx, client.ObjectKeyFromObject(stored), stored); err != nil {
				return err
			}
			return hasColor("red")(stored)
		})
	})
	setSyncMode(clusterv1alpha1.Push)
	awaitInMember(t, env, member3, template, hasColor("green"))
	await(t, env.Karmada, workOf(t, member3, template), isApplied)
}

// suspendDispatching stops the delivery to all clusters.
func suspendDispatching(t testing.TB, env *testenv.Env, policy *policyv1alpha1.PropagationPolicy) {
	t.Helper()
	all := true
	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Suspension = &policyv1alpha1.Suspension{Dispatching: &all}
	})
}

// awaitNamespace waits until the member has the namespace.
func awaitNamespace(t testing.TB, env *testenv.Env, cluster, name string) {
	t.Helper()
	await(t, memberClient(env, cluster), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, exists)
}
