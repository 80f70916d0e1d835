package integration

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/testenv"
)

// addVolumes adds a volume to a Pod for each ConfigMap, Secret and claim. A ServiceAccount becomes
// the service account of the Pod.
func addVolumes(pod *corev1.PodSpec, objects ...client.Object) {
	for _, object := range objects {
		name := object.GetName()
		source := corev1.VolumeSource{}
		switch object.(type) {
		case *corev1.ConfigMap:
			source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}
		case *corev1.Secret:
			source.Secret = &corev1.SecretVolumeSource{SecretName: name}
		case *corev1.PersistentVolumeClaim:
			source.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
		case *corev1.ServiceAccount:
			pod.ServiceAccountName = name
			continue
		}
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "volume-" + name, VolumeSource: source})
	}
}

// deploymentWithDependencies returns a Deployment that depends on objects.
func deploymentWithDependencies(namespace, name string, objects ...client.Object) *appsv1.Deployment {
	template := deployment(namespace, name, 1)
	addVolumes(&template.Spec.Template.Spec, objects...)
	return template
}

// policyWithDependencies returns a policy that propagates dependencies.
func policyWithDependencies(t testing.TB, placement policyv1alpha1.Placement, objects ...client.Object) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	policy := policyFor(t, placement, objects...)
	policy.Spec.PropagateDeps = true
	return policy
}

func newVolumeClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// isRequiredBy checks which Deployments require an attached binding, in order.
func isRequiredBy(names ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []string
		for _, snapshot := range b.Spec.RequiredBy {
			got = append(got, snapshot.Name)
		}
		var want []string
		for _, name := range names {
			want = append(want, binding.Name(name, "Deployment"))
		}
		return checkEqual("required by", want, got)
	}
}

// awaitNotInMember waits until a member does not have an object.
func awaitNotInMember(t testing.TB, env *testenv.Env, cluster string, object client.Object) {
	t.Helper()
	testenv.Eventually(t, "no object in "+cluster, func(ctx context.Context) error { return checkAbsent(ctx, memberClient(env, cluster), object) })
}

func TestDependenciesFollowDeployment(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	dependencies := []client.Object{
		configMap(namespace, "settings"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, StringData: map[string]string{"key": "value"}},
		newVolumeClaim(namespace, "data"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}},
	}
	unrelated := configMap(namespace, "unneeded")
	template := deploymentWithDependencies(namespace, "web", dependencies...)
	policy := policyWithDependencies(t, placementOn(member1, member2), template)
	env.Create(t, append(dependencies, unrelated, policy, template)...)

	for _, object := range dependencies {
		awaitInMember(t, env, member1, object, exists)
		awaitInMember(t, env, member2, object, exists)
		awaitNotInMember(t, env, member3, object)
		await(t, env.Karmada, bindingOf(t, object), isRequiredBy("web"))
	}
	awaitNotInMember(t, env, member1, unrelated)
	bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("finalizers", []string{workv1alpha2.BindingControllerFinalizer, workv1alpha2.BindingDependenciesDistributorFinalizer}, b.Finalizers)
	})
	if bound.Annotations[workv1alpha2.DependenciesAnnotation] == "" {
		t.Error("the dependencies are not recorded")
	}

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn(member2, member3) })
	awaitInMember(t, env, member3, dependencies[0], exists)
	awaitGone(t, memberClient(env, member1), dependencies[0])

	testenv.Update(t, env.Karmada, configMap(namespace, "settings"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
	awaitInMember(t, env, member3, configMap(namespace, "settings"), hasColor("red"))
}

func TestSharedDependencyHasOneAttachedBinding(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	web, api := deploymentWithDependencies(namespace, "web", settings), deploymentWithDependencies(namespace, "api", settings)
	abortPolicy, overwritePolicy := policyWithDependencies(t, placementOn(member1), web), policyWithDependencies(t, placementOn(member2), api)
	abortPolicy.Spec.ConflictResolution, overwritePolicy.Spec.ConflictResolution = policyv1alpha1.ConflictAbort, policyv1alpha1.ConflictOverwrite
	env.Create(t, settings, abortPolicy, web)
	awaitInMember(t, env, member1, settings, exists)
	bound := await(t, env.Karmada, bindingOf(t, settings), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(isRequiredBy("web")(b), checkEqual("conflict resolution", policyv1alpha1.ConflictAbort, b.Spec.ConflictResolution))
	})

	env.Create(t, overwritePolicy, api)
	awaitInMember(t, env, member2, settings, exists)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(isRequiredBy("web", "api")(b), checkEqual("conflict resolution", policyv1alpha1.ConflictOverwrite, b.Spec.ConflictResolution))
	})
	awaitEvent(t, env, bound, corev1.EventTypeWarning, workv1alpha2.EventReasonDependencyPolicyConflict)

	deleteObject(t, env.Karmada, api)
	awaitGone(t, memberClient(env, member2), settings)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(isRequiredBy("web")(b), checkEqual("uid", bound.UID, b.UID), checkEqual("conflict resolution", policyv1alpha1.ConflictAbort, b.Spec.ConflictResolution))
	})
	awaitInMember(t, env, member1, settings, exists)

	deleteObject(t, env.Karmada, web)
	awaitGone(t, memberClient(env, member1), settings)
	awaitGone(t, env.Karmada, bound)
	await(t, env.Karmada, settings, exists)
	awaitGone(t, env.Karmada, bindingOf(t, web))
}

func TestDependenciesAreDetachedWithoutPropagateDeps(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := deploymentWithDependencies(namespace, "web", settings)
	policy := policyWithDependencies(t, placementOn(member1), template)
	env.Create(t, settings, policy, template)
	awaitInMember(t, env, member1, settings, exists)

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
	awaitGone(t, memberClient(env, member1), settings)
	awaitGone(t, env.Karmada, bindingOf(t, settings))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(checkEqual("finalizers", []string{workv1alpha2.BindingControllerFinalizer}, b.Finalizers),
			checkEqual("dependencies annotation", "", b.Annotations[workv1alpha2.DependenciesAnnotation]))
	})
	awaitInMember(t, env, member1, template, exists)

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = true })
	awaitInMember(t, env, member1, settings, exists)
}

func TestDependenciesMayAppearLaterAndDisappear(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := deploymentWithDependencies(namespace, "web", settings)
	env.Create(t, policyWithDependencies(t, placementOn(member1), template), template)
	awaitInMember(t, env, member1, template, exists)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if b.Annotations[workv1alpha2.DependenciesAnnotation] == "" {
			return errors.New("the dependencies are not recorded")
		}
		return nil
	})
	for range 2 {
		env.Create(t, settings)
		awaitInMember(t, env, member1, settings, exists)
		deleteObject(t, env.Karmada, settings)
		awaitGone(t, memberClient(env, member1), settings)
		awaitGone(t, env.Karmada, bindingOf(t, settings))
		settings = configMap(namespace, "settings")
	}

	// An object to which the template no longer refers is no dependency any more.
	other := configMap(namespace, "other")
	env.Create(t, settings, other)
	awaitInMember(t, env, member1, settings, exists)
	testenv.Update(t, env.Karmada, deployment(namespace, "web", 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = nil
		addVolumes(&d.Spec.Template.Spec, other)
	})
	awaitInMember(t, env, member1, other, exists)
	awaitGone(t, memberClient(env, member1), settings)
	awaitGone(t, env.Karmada, bindingOf(t, settings))
}

func TestDeletedAttachedBindingIsRecreated(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := deploymentWithDependencies(namespace, "web", settings)
	env.Create(t, settings, policyWithDependencies(t, placementOn(member1), template), template)
	memberObject := awaitInMember(t, env, member1, settings, exists)
	bound := await(t, env.Karmada, bindingOf(t, settings), exists)
	before := await(t, env.Karmada, workOf(t, member1, settings), isApplied)
	deleteObject(t, env.Karmada, bound)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		if b.UID == bound.UID {
			return errors.New("the binding has the UID of the old one")
		}
		return nil
	})
	awaitRecreated(t, env, before)
	awaitInMember(t, env, member1, settings, func(c *corev1.ConfigMap) error { return checkEqual("uid", memberObject.UID, c.UID) })
}

func TestDependencyWithItsOwnPolicy(t *testing.T) {
	env := shared(t)
	for name, policyFirst := range map[string]bool{"the dependent first": false, "the policy first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.Namespace(t)
			settings := configMap(namespace, "settings")
			template := deploymentWithDependencies(namespace, "web", settings)
			policy := policyFor(t, placementOn(member2), settings)
			env.Create(t, settings)
			if policyFirst {
				env.Create(t, policy)
				awaitInMember(t, env, member2, settings, exists)
			}
			env.Create(t, policyWithDependencies(t, placementOn(member1), template), template)
			awaitInMember(t, env, member1, settings, exists)
			if !policyFirst {
				env.Create(t, policy)
			}
			awaitInMember(t, env, member2, settings, exists)
			awaitInMember(t, env, member1, settings, exists)
			bound := await(t, env.Karmada, bindingOf(t, settings), func(b *workv1alpha2.ResourceBinding) error {
				return errors.Join(isRequiredBy("web")(b), checkEqual("clusters", []workv1alpha2.TargetCluster{{Name: member2}}, b.Spec.Clusters))
			})

			// The clusters that the deleted policy selected are kept.
			deleteObject(t, env.Karmada, policy)
			awaitGone(t, env.Karmada, policy)
			testenv.Update(t, env.Karmada, configMap(namespace, "settings"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
			awaitInMember(t, env, member1, configMap(namespace, "settings"), hasColor("red"))
			awaitInMember(t, env, member2, configMap(namespace, "settings"), hasColor("red"))

			// The object is removed only from the clusters of the deleted dependent.
			deleteObject(t, env.Karmada, template)
			awaitGone(t, memberClient(env, member1), settings)
			await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
				return errors.Join(isRequiredBy()(b), checkEqual("uid", bound.UID, b.UID))
			})
			awaitInMember(t, env, member2, settings, exists)
		})
	}
}

func TestStatefulSetClaimTemplatesAreNotDependencies(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	templateClaim, podClaim := newVolumeClaim(namespace, "own"), newVolumeClaim(namespace, "foreign")
	labels := map[string]string{"app": "db"}
	template := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "db",
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: deployment(namespace, "db", 1).Spec.Template.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*newVolumeClaim("", "own")},
		},
	}
	addVolumes(&template.Spec.Template.Spec, templateClaim, podClaim)
	env.Create(t, templateClaim, podClaim, policyWithDependencies(t, placementOn(member1), template), template)
	awaitInMember(t, env, member1, podClaim, exists)
	if err := checkAbsent(t.Context(), env.Karmada, bindingOf(t, templateClaim)); err != nil {
		t.Errorf("the claim of a volume claim template has a binding: %v", err)
	}
	awaitNotInMember(t, env, member1, templateClaim)
}

func TestRestartWithDependenciesWritesNothing(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	settings, claim := configMap(namespace, "settings"), newVolumeClaim(namespace, "data")
	policy := policyFor(t, placementOn(member2), claim)
	web, api := deploymentWithDependencies(namespace, "web", settings, claim), deploymentWithDependencies(namespace, "api", settings)
	abortPolicy, overwritePolicy := policyWithDependencies(t, placementOn(member1), web), policyWithDependencies(t, placementOn(member2), api)
	overwritePolicy.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	env.Create(t, settings, claim, policy, abortPolicy, overwritePolicy, web, api)
	for _, object := range []client.Object{settings, claim} {
		awaitInMember(t, env, member1, object, exists)
		awaitInMember(t, env, member2, object, exists)
		await(t, env.Karmada, bindingOf(t, object), func(b *workv1alpha2.ResourceBinding) error {
			return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
		})
	}
	restartComponents(t, env)
	checkSilentStart(t, env)
	// After the restart, the components know again which templates depend on the ConfigMap.
	testenv.Update(t, env.Karmada, configMap(namespace, "settings"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
	awaitInMember(t, env, member1, configMap(namespace, "settings"), hasColor("red"))
}
