package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// bindingOf reads the binding of a template.
func (i *installation) bindingOf(ctx context.Context, template client.Object) (*workv1alpha2.ResourceBinding, error) {
	kind, err := i.karmada.GroupVersionKindFor(template)
	if err != nil {
		return nil, err
	}
	found := &workv1alpha2.ResourceBinding{}
	key := client.ObjectKey{Namespace: template.GetNamespace(), Name: binding.Name(template.GetName(), kind.Kind)}
	return found, i.karmada.Get(ctx, key, found)
}

// awaitFullyApplied waits until the binding of a template has the condition FullyApplied
// with a status and with parts of a message.
func awaitFullyApplied(t *testing.T, template client.Object, want metav1.ConditionStatus, parts ...string) {
	t.Helper()
	shared.awaitFullyApplied(t, template, want, parts...)
}

func (i *installation) awaitFullyApplied(t *testing.T, template client.Object, want metav1.ConditionStatus, parts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("binding of %s with FullyApplied=%s", template.GetName(), want), func(ctx context.Context) error {
		found, err := i.bindingOf(ctx, template)
		if err != nil {
			return err
		}
		condition := meta.FindStatusCondition(found.Status.Conditions, workv1alpha2.FullyApplied)
		switch {
		case condition == nil || condition.ObservedGeneration < found.Generation:
			return errors.New("the condition is not current")
		case condition.Status != want || !containsAll(condition.Message, parts):
			return fmt.Errorf("the condition is %s: %s", condition.Status, condition.Message)
		}
		return nil
	})
}

// countWarnings returns the sum of the counts of the Warning events of an object.
func countWarnings(t *testing.T, involved client.Object) (count int32) {
	t.Helper()
	events := &corev1.EventList{}
	if err := shared.karmada.List(t.Context(), events, client.InNamespace(involved.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.InvolvedObject.UID == involved.GetUID() && event.Type == corev1.EventTypeWarning {
			count += event.Count
		}
	}
	return count
}

// A change that one member rejects is reported on the Work, the binding and the template,
// with its cause. The delivery succeeds when the cause is removed.
func TestMemberRejectionIsReportedAndRecovers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	web := &corev1.Service{ObjectMeta: objectMeta(namespace, "web"), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}},
	}}
	services := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Service"}
	createObjects(t, shared, web, selectAll(services).propagationPolicy(namespace, member1, member2))
	awaitFullyApplied(t, web, metav1.ConditionTrue)

	invalidOverride := &policyv1alpha1.OverridePolicy{ObjectMeta: objectMeta(namespace, "wrong"), Spec: policyv1alpha1.OverrideSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{services},
		OverrideRules: []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member2}},
			Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: "/spec/ports/0/port", Operator: policyv1alpha1.OverriderOpReplace, Value: rawJSON("70000")},
			}},
		}},
	}}
	createObjects(t, shared, invalidOverride)
	cause := []string{member2, "Service " + namespace + "/web", "spec.ports[0].port"}
	awaitWorkApplied(t, web, member2, metav1.ConditionFalse, cause...)
	awaitFullyApplied(t, web, metav1.ConditionFalse, cause...)
	awaitWarningEvent(t, web, "SyncFailed", cause...)
	awaitWorkApplied(t, web, member1, metav1.ConditionTrue)
	updateObject(t, web, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(8080) })
	eventually(t, "the change in the member that rejects nothing", func(ctx context.Context) error {
		memberObject := &corev1.Service{}
		if err := shared.members[member1].Get(ctx, client.ObjectKeyFromObject(web), memberObject); err != nil {
			return err
		}
		if port := memberObject.Spec.Ports[0].TargetPort; port.IntValue() != 8080 {
			return fmt.Errorf("the target port is %s", port.String())
		}
		return nil
	})

	if err := shared.karmada.Delete(t.Context(), invalidOverride); err != nil {
		t.Fatal(err)
	}
	awaitFullyApplied(t, web, metav1.ConditionTrue)
	if count := countWarnings(t, web); count != 1 {
		t.Errorf("one cluster rejected the change for one cause, but the template has %d warnings", count)
	}
}

// An immutable field gets its new value when the user deletes the object in the member, as
// the message says.
func TestImmutableObjectIsRecreatedAfterDeletion(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings := newConfigMap(namespace, "settings", "1")
	settings.Immutable = new(true)
	createObjects(t, shared, settings, selectAll(configMapSelector).propagationPolicy(namespace, member1, member2))
	before := awaitConfigMapValue(t, member2, settings, "1")

	createObjects(t, shared, &policyv1alpha1.OverridePolicy{ObjectMeta: objectMeta(namespace, "other"), Spec: policyv1alpha1.OverrideSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{configMapSelector},
		OverrideRules: []policyv1alpha1.RuleWithCluster{{
			TargetCluster: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{member2}},
			Overriders: policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{
				{Path: "/data/key", Operator: policyv1alpha1.OverriderOpReplace, Value: rawJSON(`"2"`)},
			}},
		}},
	}})
	awaitWarningEvent(t, settings, "SyncFailed", member2, namespace+"/settings", "immutable", "delete the object in the cluster")
	if err := shared.members[member2].Delete(t.Context(), newConfigMap(namespace, "settings", "")); err != nil {
		t.Fatal(err)
	}
	if after := awaitConfigMapValue(t, member2, settings, "2"); after == before {
		t.Error("the immutable object was updated instead of recreated")
	}
	awaitFullyApplied(t, settings, metav1.ConditionTrue)
}

// TestFrozenOrKilledMemberCatchesUp suspends the process of a member, resumes it, and then
// kills it.
func TestFrozenOrKilledMemberCatchesUp(t *testing.T) {
	frozen := &installation{dir: filepath.Join(t.TempDir(), "shaky")}
	t.Cleanup(frozen.remove)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := frozen.up(ctx, "--members", "2", "--nodes-per-member", "1"); err != nil {
		t.Fatal(err)
	}
	web := newDeployment("default", "web", 1)
	createObjects(t, frozen, web, selectAll(deploymentSelector).propagationPolicy("default", member1, member2))
	frozen.awaitFullyApplied(t, web, metav1.ConditionTrue)

	sendSignal := func(sendSignal syscall.Signal) {
		t.Helper()
		pid, err := frozen.processID(member2)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, sendSignal); err != nil {
			t.Fatal(err)
		}
	}
	setImage := func(image string) {
		t.Helper()
		eventually(t, "changing the image", func(ctx context.Context) error {
			if err := frozen.karmada.Get(ctx, client.ObjectKeyFromObject(web), web); err != nil {
				return err
			}
			web.Spec.Template.Spec.Containers[0].Image = image
			return frozen.karmada.Update(ctx, web)
		})
	}
	awaitImage := func(cluster, image string) {
		t.Helper()
		eventually(t, image+" in "+cluster, func(ctx context.Context) error {
			memberObject := &appsv1.Deployment{}
			if err := frozen.members[cluster].Get(ctx, client.ObjectKeyFromObject(web), memberObject); err != nil {
				return err
			}
			if got := memberObject.Spec.Template.Spec.Containers[0].Image; got != image {
				return fmt.Errorf("the image is %s", got)
			}
			return nil
		})
	}

	sendSignal(syscall.SIGSTOP)
	setImage("nginx:2")
	awaitImage(member1, "nginx:2")
	// Require only the name of the member, because a later message contains the time since
	// which the member is unreachable.
	frozen.awaitFullyApplied(t, web, metav1.ConditionFalse, member2+": ")
	sendSignal(syscall.SIGCONT)
	awaitImage(member2, "nginx:2")
	frozen.awaitFullyApplied(t, web, metav1.ConditionTrue)

	sendSignal(syscall.SIGKILL)
	setImage("nginx:3")
	awaitImage(member1, "nginx:3")
	awaitImage(member2, "nginx:3")
	frozen.awaitFullyApplied(t, web, metav1.ConditionTrue)
}

// Clients rely on a condition with the current generation of a binding. Therefore the
// condition must not be True before the binding has the state that the condition reports.
func TestBindingConditionsMatchGeneration(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings, policy := newConfigMap(namespace, "settings", "0"), selectAll(configMapSelector).propagationPolicy(namespace, member1, member2)
	createObjects(t, shared, settings, policy)
	awaitFullyApplied(t, settings, metav1.ConditionTrue)
	// awaitTrue changes the binding and waits until a condition is True for the new
	// generation.
	awaitTrue := func(condition string, change func()) *workv1alpha2.ResourceBinding {
		t.Helper()
		before, err := shared.bindingOf(t.Context(), settings)
		if err != nil {
			t.Fatal(err)
		}
		change()
		after := before
		eventually(t, condition+" after a change", func(ctx context.Context) error {
			if after, err = shared.bindingOf(ctx, settings); err != nil {
				return err
			}
			current := meta.FindStatusCondition(after.Status.Conditions, condition)
			if after.Generation == before.Generation || current == nil || current.ObservedGeneration < after.Generation || current.Status != metav1.ConditionTrue {
				return fmt.Errorf("generation %d has the condition %v", after.Generation, current)
			}
			return nil
		})
		return after
	}
	for round := range 5 {
		value := fmt.Sprint(round + 1)
		awaitTrue(workv1alpha2.FullyApplied, func() { changeValue(t, settings, value) })
		for _, cluster := range []string{member1, member2} {
			memberObject := &corev1.ConfigMap{}
			if err := shared.members[cluster].Get(t.Context(), client.ObjectKeyFromObject(settings), memberObject); err != nil {
				t.Fatal(err)
			}
			if memberObject.Data["key"] != value {
				t.Fatalf("FullyApplied is True, but %s has %s instead of %s", cluster, memberObject.Data["key"], value)
			}
		}
		want := []string{member1, member2}[round%2]
		placed := awaitTrue(workv1alpha2.Scheduled, func() { changePlacement(t, policy, want) })
		if got := placed.Spec.Clusters; len(got) != 1 || got[0].Name != want {
			t.Fatalf("Scheduled is True, but the clusters are %v instead of %s", got, want)
		}
		awaitTrue(workv1alpha2.FullyApplied, func() { changePlacement(t, policy, member1, member2) })
	}
}

// When a cluster is stopped for longer than the node monitor grace period, its node
// controller sets its Pods to not ready. These Pods must become ready again.
func TestSimulatedPodsBecomeReadyAgain(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	web := newDeployment(namespace, "web", 1)
	createObjects(t, shared, web, selectAll(deploymentSelector).propagationPolicy(namespace, member1))
	awaitReadyReplicas(t, web, 1)
	pod := &corev1.Pod{}
	eventually(t, "setting the Pod to not ready", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := shared.members[member1].List(ctx, pods, client.InNamespace(namespace)); err != nil || len(pods.Items) != 1 {
			return fmt.Errorf("%d Pods, error %w", len(pods.Items), err)
		}
		pod = &pods.Items[0]
		for i := range pod.Status.Conditions {
			if pod.Status.Conditions[i].Type == corev1.PodReady {
				pod.Status.Conditions[i].Status = corev1.ConditionFalse
			}
		}
		return shared.members[member1].Status().Update(ctx, pod)
	})
	eventually(t, "the Pod is ready again", func(ctx context.Context) error {
		if err := shared.members[member1].Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("the conditions of the Pod are %v", pod.Status.Conditions)
	})
	awaitReadyReplicas(t, web, 1)
}
