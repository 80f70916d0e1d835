package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// awaitConfigMapValue waits until a member has a ConfigMap with a value, and returns its
// UID.
func awaitConfigMapValue(t *testing.T, cluster string, template *corev1.ConfigMap, value string) types.UID {
	t.Helper()
	found := &corev1.ConfigMap{}
	eventually(t, fmt.Sprintf("%s of %s in %s", value, template.Name, cluster), func(ctx context.Context) error {
		if err := shared.members[cluster].Get(ctx, client.ObjectKeyFromObject(template), found); err != nil {
			return err
		}
		if found.Data["key"] != value {
			return fmt.Errorf("its value is %q", found.Data["key"])
		}
		return nil
	})
	return found.UID
}

// awaitRemoval waits until the object does not exist in a member.
func awaitRemoval(t *testing.T, cluster string, object client.Object) {
	t.Helper()
	eventually(t, object.GetName()+" is deleted in "+cluster, func(ctx context.Context) error {
		return checkAbsent(ctx, shared.members[cluster], object.DeepCopyObject().(client.Object))
	})
}

// changePlacement changes the clusters of a policy.
func changePlacement(t *testing.T, to *policyv1alpha1.PropagationPolicy, clusters ...string) {
	t.Helper()
	updateObject(t, to, func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Placement = resourceSelectors{}.placement(clusters...)
	})
}

// changeValue changes the value of a template.
func changeValue(t *testing.T, template *corev1.ConfigMap, value string) {
	t.Helper()
	updateObject(t, template, func(c *corev1.ConfigMap) { c.Data["key"] = value })
}

func TestObjectStaysAfterPolicyDeletion(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings, first := newConfigMap(namespace, "settings", "1"), selectAll(configMapSelector).propagationPolicy(namespace, member1)
	createObjects(t, shared, settings, first)
	before := awaitConfigMapValue(t, member1, settings, "1")

	if err := shared.karmada.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "unclaimed template", func(ctx context.Context) error {
		if err := shared.karmada.Get(ctx, client.ObjectKeyFromObject(settings), settings); err != nil {
			return err
		}
		if name := settings.Annotations[policyv1alpha1.PropagationPolicyNameAnnotation]; name != "" {
			return fmt.Errorf("the template is claimed by %s", name)
		}
		return nil
	})
	changeValue(t, settings, "2") // no policy applies, so this version is not delivered
	// Karmada still repairs drift of the version that was delivered before.
	drifted := &corev1.ConfigMap{ObjectMeta: objectMeta(namespace, "settings"), Data: map[string]string{"key": "drift"}}
	if err := shared.members[member1].Patch(t.Context(), drifted, client.Merge); err != nil {
		t.Fatal(err)
	}
	if after := awaitConfigMapValue(t, member1, settings, "1"); after != before {
		t.Error("the object was recreated")
	}

	second := selectAll(configMapSelector).propagationPolicy(namespace, member1, member2)
	second.Name = "second"
	createObjects(t, shared, second)
	awaitConfigMapValue(t, member2, settings, "2")
	if after := awaitConfigMapValue(t, member1, settings, "2"); after != before {
		t.Error("the next policy has the same cluster, but the object was recreated")
	}
	changePlacement(t, second, member2)
	awaitRemoval(t, member1, settings)
}

func TestLazyActivation(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	touched, untouched := newConfigMap(namespace, "touched", "1"), newConfigMap(namespace, "untouched", "1")
	lazy := selectAll(configMapSelector).propagationPolicy(namespace, member1)
	lazy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
	createObjects(t, shared, lazy, touched, untouched)
	awaitConfigMapValue(t, member1, touched, "1")
	awaitConfigMapValue(t, member1, untouched, "1")

	changePlacement(t, lazy, member2)
	changeValue(t, touched, "2")
	awaitConfigMapValue(t, member2, touched, "2")
	awaitRemoval(t, member1, touched)
	awaitConfigMapValue(t, member1, untouched, "1")
	if err := checkAbsent(t.Context(), shared.members[member2], untouched.DeepCopy()); err != nil {
		t.Errorf("an unchanged object followed the lazy policy: %v", err)
	}
}

func TestPolicyPreemption(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings, low := newConfigMap(namespace, "settings", "1"), selectAll(configMapSelector).propagationPolicy(namespace, member1)
	createObjects(t, shared, settings, low)
	awaitConfigMapValue(t, member1, settings, "1")

	selector := configMapSelector
	selector.Name = settings.Name
	high := selectAll(selector).propagationPolicy(namespace, member2)
	high.Name, high.Spec.Priority, high.Spec.Preemption = "high", new(int32(5)), policyv1alpha1.PreemptAlways
	createObjects(t, shared, high)
	awaitConfigMapValue(t, member2, settings, "1")
	awaitRemoval(t, member1, settings)
}

func TestSuspendAndResumeDispatching(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings, policy := newConfigMap(namespace, "settings", "1"), selectAll(configMapSelector).propagationPolicy(namespace, member1, member2)
	createObjects(t, shared, settings, policy)
	awaitConfigMapValue(t, member1, settings, "1")
	awaitConfigMapValue(t, member2, settings, "1")
	suspend := func(suspension *policyv1alpha1.Suspension) {
		t.Helper()
		updateObject(t, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = suspension })
	}

	suspend(&policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member2}}})
	awaitFullyApplied(t, settings, metav1.ConditionTrue, member2+": dispatching is suspended")
	changeValue(t, settings, "2")
	awaitConfigMapValue(t, member1, settings, "2")
	awaitConfigMapValue(t, member2, settings, "1")
	awaitFullyApplied(t, settings, metav1.ConditionFalse, "Dispatching is suspended for "+member2+": the current version is not applied")

	suspend(&policyv1alpha1.Suspension{Dispatching: new(true)})
	changeValue(t, settings, "3")
	awaitFullyApplied(t, settings, metav1.ConditionFalse, "Dispatching is suspended for "+member1+", "+member2+": the current version is not applied")
	suspend(nil)
	awaitConfigMapValue(t, member1, settings, "3")
	awaitConfigMapValue(t, member2, settings, "3")
	awaitFullyApplied(t, settings, metav1.ConditionTrue)
}

func TestSkippedNamespaceIsReportedAsCause(t *testing.T) {
	t.Parallel()
	skippedNamespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-kept-", Labels: map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"},
	}}
	createObjects(t, shared, skippedNamespace)
	settings := newConfigMap(skippedNamespace.Name, "settings", "1")
	createObjects(t, shared, settings, selectAll(configMapSelector).propagationPolicy(skippedNamespace.Name, member1, member2))
	for _, cluster := range []string{member1, member2} {
		awaitWarningEvent(t, settings, "SyncFailed", cluster, skippedNamespace.Name+"/settings", "not found", policyv1alpha1.NamespaceSkipAutoPropagationLabel)
	}
	awaitFullyApplied(t, settings, metav1.ConditionFalse, member1, member2, skippedNamespace.Name, "not found")
	if count := countWarnings(t, settings); count != 2 {
		t.Errorf("two clusters failed, but the template has %d warnings", count)
	}

	updateObject(t, skippedNamespace, func(n *corev1.Namespace) { delete(n.Labels, policyv1alpha1.NamespaceSkipAutoPropagationLabel) })
	awaitConfigMapValue(t, member1, settings, "1")
	awaitConfigMapValue(t, member2, settings, "1")
	awaitFullyApplied(t, settings, metav1.ConditionTrue)
}

func TestPropagateDependencies(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings := newConfigMap(namespace, "settings", "1")
	dependencies := map[string]client.Object{
		"ConfigMap": settings,
		"Secret":    &corev1.Secret{ObjectMeta: objectMeta(namespace, "password"), StringData: map[string]string{"key": "1"}},
		"claim": &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "disk"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: storageRequest("1Gi")},
		}},
		"ServiceAccount": &corev1.ServiceAccount{ObjectMeta: objectMeta(namespace, "robot")},
	}
	web := newDeployment(namespace, "web", 1)
	pod := &web.Spec.Template.Spec
	pod.ServiceAccountName = "robot"
	pod.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "password"}}},
	}
	pod.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"},
	}}}
	policy := selectAll(deploymentSelector).propagationPolicy(namespace, member1)
	policy.Spec.PropagateDeps = true
	createObjects(t, shared, policy, web, settings, dependencies["Secret"], dependencies["claim"], dependencies["ServiceAccount"])
	for kind, object := range dependencies {
		eventually(t, kind+" in "+member1, func(ctx context.Context) error {
			return shared.members[member1].Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object))
		})
	}
	changeValue(t, settings, "2")
	awaitConfigMapValue(t, member1, settings, "2")

	updateObject(t, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
	for kind, object := range dependencies {
		eventually(t, "the deletion of the "+kind, func(ctx context.Context) error {
			found := object.DeepCopyObject().(client.Object)
			err := shared.members[member1].Get(ctx, client.ObjectKeyFromObject(object), found)
			// The Pod of the workload, which stays, uses the claim, so the member keeps it until then.
			if err == nil && found.GetDeletionTimestamp() == nil {
				err = errors.New("it is not being deleted")
			}
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return err
		})
	}
	eventually(t, "the workload stays", func(ctx context.Context) error {
		return shared.members[member1].Get(ctx, client.ObjectKeyFromObject(web), &appsv1.Deployment{})
	})
}

func TestPreserveResourcesOnDeletion(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	settings, preserving := newConfigMap(namespace, "settings", "1"), selectAll(configMapSelector).propagationPolicy(namespace, member1)
	settings.Labels = map[string]string{"app": "web"}
	preserving.Spec.PreserveResourcesOnDeletion = new(true)
	createObjects(t, shared, settings, preserving)
	before := awaitConfigMapValue(t, member1, settings, "1")
	if err := shared.karmada.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the object without Karmada labels and annotations", func(ctx context.Context) error {
		memberObject := &corev1.ConfigMap{}
		if err := shared.members[member1].Get(ctx, client.ObjectKeyFromObject(settings), memberObject); err != nil {
			return err
		}
		if diff := cmp.Diff([]any{before, map[string]string{"app": "web"}, map[string]string(nil), "1"},
			[]any{memberObject.UID, memberObject.Labels, memberObject.Annotations, memberObject.Data["key"]}); diff != "" {
			return fmt.Errorf("UID, labels, annotations, value (-want +got):\n%s", diff)
		}
		return nil
	})
}
