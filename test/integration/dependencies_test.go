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

// mounting adds a volume for each object to a pod: ConfigMaps, Secrets and claims
// are mounted, a ServiceAccount is what the pod runs as.
func mounting(pod *corev1.PodSpec, objects ...client.Object) {
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

// needing is a Deployment that needs objects beside it.
func needing(namespace, name string, objects ...client.Object) *appsv1.Deployment {
	template := deployment(namespace, name, 1)
	mounting(&template.Spec.Template.Spec, objects...)
	return template
}

// following is a policy that takes along what its objects need.
func following(t testing.TB, placement policyv1alpha1.Placement, objects ...client.Object) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	policy := policyFor(t, placement, objects...)
	policy.Spec.PropagateDeps = true
	return policy
}

func claimFor(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// requiredBy checks which Deployments a binding follows, in order.
func requiredBy(names ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []string
		for _, snapshot := range b.Spec.RequiredBy {
			got = append(got, snapshot.Name)
		}
		var want []string
		for _, name := range names {
			want = append(want, binding.Name(name, "Deployment"))
		}
		return same("required by", want, got)
	}
}

func notIn(t testing.TB, env *testenv.Env, cluster string, object client.Object) {
	t.Helper()
	testenv.Eventually(t, "nothing in "+cluster, func(ctx context.Context) error { return absent(ctx, member(env, cluster), object) })
}

func TestWhatADeploymentNeedsFollowsItToItsClusters(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	needed := []client.Object{
		configMap(namespace, "settings"),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}, StringData: map[string]string{"key": "value"}},
		claimFor(namespace, "data"),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}},
	}
	unneeded := configMap(namespace, "unneeded")
	template := needing(namespace, "web", needed...)
	policy := following(t, on(member1, member2), template)
	env.Create(t, append(needed, unneeded, policy, template)...)

	for _, object := range needed {
		inMember(t, env, member1, object, exists)
		inMember(t, env, member2, object, exists)
		notIn(t, env, member3, object)
		await(t, env.Karmada, bindingOf(t, object), requiredBy("web"))
	}
	notIn(t, env, member1, unneeded)
	bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return same("finalizers", []string{workv1alpha2.BindingControllerFinalizer, workv1alpha2.BindingDependenciesDistributorFinalizer}, b.Finalizers)
	})
	if bound.Annotations[workv1alpha2.DependenciesAnnotation] == "" {
		t.Error("the dependencies are not recorded")
	}

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = on(member2, member3) })
	inMember(t, env, member3, needed[0], exists)
	awaitGone(t, member(env, member1), needed[0])

	testenv.Update(t, env.Karmada, configMap(namespace, "settings"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
	inMember(t, env, member3, configMap(namespace, "settings"), hasColor("red"))
}

func TestDeploymentsThatShareAConfigMapShareItsBinding(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	web, api := needing(namespace, "web", settings), needing(namespace, "api", settings)
	gentle, harsh := following(t, on(member1), web), following(t, on(member2), api)
	gentle.Spec.ConflictResolution, harsh.Spec.ConflictResolution = policyv1alpha1.ConflictAbort, policyv1alpha1.ConflictOverwrite
	env.Create(t, settings, gentle, web)
	inMember(t, env, member1, settings, exists)
	bound := await(t, env.Karmada, bindingOf(t, settings), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(requiredBy("web")(b), same("conflict resolution", policyv1alpha1.ConflictAbort, b.Spec.ConflictResolution))
	})

	env.Create(t, harsh, api)
	inMember(t, env, member2, settings, exists)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(requiredBy("web", "api")(b), same("conflict resolution", policyv1alpha1.ConflictOverwrite, b.Spec.ConflictResolution))
	})
	awaitEvent(t, env, bound, corev1.EventTypeWarning, workv1alpha2.EventReasonDependencyPolicyConflict)

	deleteObject(t, env.Karmada, api)
	awaitGone(t, member(env, member2), settings)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(requiredBy("web")(b), same("uid", bound.UID, b.UID), same("conflict resolution", policyv1alpha1.ConflictAbort, b.Spec.ConflictResolution))
	})
	inMember(t, env, member1, settings, exists)

	deleteObject(t, env.Karmada, web)
	awaitGone(t, member(env, member1), settings)
	awaitGone(t, env.Karmada, bound)
	await(t, env.Karmada, settings, exists)
	awaitGone(t, env.Karmada, bindingOf(t, web))
}

func TestDependenciesStayAtHomeWhenThePolicySaysSo(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := needing(namespace, "web", settings)
	policy := following(t, on(member1), template)
	env.Create(t, settings, policy, template)
	inMember(t, env, member1, settings, exists)

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
	awaitGone(t, member(env, member1), settings)
	awaitGone(t, env.Karmada, bindingOf(t, settings))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(same("finalizers", []string{workv1alpha2.BindingControllerFinalizer}, b.Finalizers),
			same("note", "", b.Annotations[workv1alpha2.DependenciesAnnotation]))
	})
	inMember(t, env, member1, template, exists)

	testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = true })
	inMember(t, env, member1, settings, exists)
}

func TestDependenciesMayComeLaterAndGo(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := needing(namespace, "web", settings)
	env.Create(t, following(t, on(member1), template), template)
	inMember(t, env, member1, template, exists)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		if b.Annotations[workv1alpha2.DependenciesAnnotation] == "" {
			return errors.New("the dependencies are not recorded")
		}
		return nil
	})
	for range 2 {
		env.Create(t, settings)
		inMember(t, env, member1, settings, exists)
		deleteObject(t, env.Karmada, settings)
		awaitGone(t, member(env, member1), settings)
		awaitGone(t, env.Karmada, bindingOf(t, settings))
		settings = configMap(namespace, "settings")
	}

	// What the template refers to no longer is needed no longer.
	other := configMap(namespace, "other")
	env.Create(t, settings, other)
	inMember(t, env, member1, settings, exists)
	testenv.Update(t, env.Karmada, deployment(namespace, "web", 1), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Volumes = nil
		mounting(&d.Spec.Template.Spec, other)
	})
	inMember(t, env, member1, other, exists)
	awaitGone(t, member(env, member1), settings)
	awaitGone(t, env.Karmada, bindingOf(t, settings))
}

func TestABindingOfADependencyThatIsDeletedComesBack(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := needing(namespace, "web", settings)
	env.Create(t, settings, following(t, on(member1), template), template)
	made := inMember(t, env, member1, settings, exists)
	bound := await(t, env.Karmada, bindingOf(t, settings), exists)
	before := await(t, env.Karmada, workOf(t, member1, settings), applied)
	deleteObject(t, env.Karmada, bound)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		if b.UID == bound.UID {
			return errors.New("it is still the old one")
		}
		return nil
	})
	again(t, env, before)
	inMember(t, env, member1, settings, func(c *corev1.ConfigMap) error { return same("uid", made.UID, c.UID) })
}

func TestAPolicyAndADependentMayBothWantAnObject(t *testing.T) {
	env := shared(t)
	for name, first := range map[string]bool{"the dependent first": false, "the policy first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.Namespace(t)
			settings := configMap(namespace, "settings")
			template := needing(namespace, "web", settings)
			policy := policyFor(t, on(member2), settings)
			env.Create(t, settings)
			if first {
				env.Create(t, policy)
				inMember(t, env, member2, settings, exists)
			}
			env.Create(t, following(t, on(member1), template), template)
			inMember(t, env, member1, settings, exists)
			if !first {
				env.Create(t, policy)
			}
			inMember(t, env, member2, settings, exists)
			inMember(t, env, member1, settings, exists)
			bound := await(t, env.Karmada, bindingOf(t, settings), func(b *workv1alpha2.ResourceBinding) error {
				return errors.Join(requiredBy("web")(b), same("clusters", []workv1alpha2.TargetCluster{{Name: member2}}, b.Spec.Clusters))
			})

			// The policy goes, and what it decided stays.
			deleteObject(t, env.Karmada, policy)
			awaitGone(t, env.Karmada, policy)
			testenv.Update(t, env.Karmada, configMap(namespace, "settings"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
			inMember(t, env, member1, configMap(namespace, "settings"), hasColor("red"))
			inMember(t, env, member2, configMap(namespace, "settings"), hasColor("red"))

			// The dependent goes, and only its own wish with it.
			deleteObject(t, env.Karmada, template)
			awaitGone(t, member(env, member1), settings)
			await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
				return errors.Join(requiredBy()(b), same("uid", bound.UID, b.UID))
			})
			inMember(t, env, member2, settings, exists)
		})
	}
}

func TestAStatefulSetDoesNotTakeItsOwnClaimsAlong(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	own, foreign := claimFor(namespace, "own"), claimFor(namespace, "foreign")
	labels := map[string]string{"app": "db"}
	template := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: "db",
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: deployment(namespace, "db", 1).Spec.Template.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*claimFor("", "own")},
		},
	}
	mounting(&template.Spec.Template.Spec, own, foreign)
	env.Create(t, own, foreign, following(t, on(member1), template), template)
	inMember(t, env, member1, foreign, exists)
	if err := absent(t.Context(), env.Karmada, bindingOf(t, own)); err != nil {
		t.Errorf("the claim of the StatefulSet's own templates has a binding: %v", err)
	}
	notIn(t, env, member1, own)
}

func TestRestartWithDependenciesWritesNothing(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	settings, claim := configMap(namespace, "settings"), claimFor(namespace, "data")
	policy := policyFor(t, on(member2), claim)
	web, api := needing(namespace, "web", settings, claim), needing(namespace, "api", settings)
	gentle, harsh := following(t, on(member1), web), following(t, on(member2), api)
	harsh.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite
	env.Create(t, settings, claim, policy, gentle, harsh, web, api)
	for _, object := range []client.Object{settings, claim} {
		inMember(t, env, member1, object, exists)
		inMember(t, env, member2, object, exists)
		await(t, env.Karmada, bindingOf(t, object), func(b *workv1alpha2.ResourceBinding) error {
			return condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
		})
	}
	restart(t, env)
	startsSilently(t, env)
	// The references are known again.
	testenv.Update(t, env.Karmada, configMap(namespace, "settings"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"color": "red"} })
	inMember(t, env, member1, configMap(namespace, "settings"), hasColor("red"))
}
