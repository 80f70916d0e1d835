package integration

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

func TestCreationOrderOfTemplateAndPolicyDoesNotMatter(t *testing.T) {
	env := shared(t)
	for name, order := range map[string]func(t *testing.T, template, policy client.Object){
		"the policy first":   func(t *testing.T, template, policy client.Object) { env.Create(t, policy, template) },
		"the template first": func(t *testing.T, template, policy client.Object) { env.Create(t, template, policy) },
		"the template long before the policy": func(t *testing.T, template, policy client.Object) {
			env.Create(t, template)
			// An object that is created later is propagated, so the template was reconciled.
			other := configMap(template.GetNamespace(), "other")
			env.Create(t, policyFor(t, placementOn(member1), other), other)
			awaitInMember(t, env, member1, other, exists)
			env.Create(t, policy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := deployment(env.Namespace(t), "web", 2)
			order(t, template, policyFor(t, placementOn(member1, member2), template))
			awaitInMember(t, env, member1, template, exists)
			awaitInMember(t, env, member2, template, exists)
			testenv.Eventually(t, "no object in member3", func(ctx context.Context) error {
				return checkAbsent(ctx, memberClient(env, member3), template)
			})
		})
	}
}

func TestPolicySelectsByNameLabelsOrKind(t *testing.T) {
	env := shared(t)
	for name, c := range map[string]struct {
		selector policyv1alpha1.ResourceSelector
		selects  []string
	}{
		"by name": {policyv1alpha1.ResourceSelector{Name: "a"}, []string{"a"}},
		"by labels": {
			policyv1alpha1.ResourceSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}},
			[]string{"b"},
		},
		"by kind": {policyv1alpha1.ResourceSelector{}, []string{"a", "b"}},
		"a name takes precedence over labels": {
			policyv1alpha1.ResourceSelector{Name: "a", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "front"}}},
			[]string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := env.Namespace(t)
			c.selector.APIVersion, c.selector.Kind = "v1", "ConfigMap"
			a, b, last := configMap(namespace, "a"), configMap(namespace, "b"), deployment(namespace, "last", 1)
			b.Labels = map[string]string{"tier": "front"}
			env.Create(t, &policyv1alpha1.PropagationPolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "selective"},
				Spec: policyv1alpha1.PropagationSpec{
					ResourceSelectors: []policyv1alpha1.ResourceSelector{c.selector}, Placement: placementOn(member1),
				},
			}, a, b)
			for _, selected := range c.selects {
				awaitInMember(t, env, member1, configMap(namespace, selected), exists)
			}
			env.Create(t, policyFor(t, placementOn(member1), last), last)
			awaitInMember(t, env, member1, last, exists)
			testenv.Eventually(t, "bindings of the selected templates", func(ctx context.Context) error {
				bindings := &workv1alpha2.ResourceBindingList{}
				if err := env.Karmada.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
					return err
				}
				if len(bindings.Items) != len(c.selects)+1 {
					return fmt.Errorf("there are %d bindings for %v and one Deployment", len(bindings.Items), c.selects)
				}
				return nil
			})
		})
	}
}

func TestLabelsAndAnnotationsLinkPolicyBindingWorkAndMemberObject(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	policy := policyFor(t, placementOn(member1), template)
	policy.Name = "propagate-web"
	env.Create(t, policy, template)

	policy = await(t, env.Karmada, policy, exists)
	policyID := policy.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	if policyID == "" || len(policy.Finalizers) != 1 || policy.Finalizers[0] != policyv1alpha1.PropagationPolicyControllerFinalizer {
		t.Fatalf("the policy has labels %v and finalizers %v", policy.Labels, policy.Finalizers)
	}
	checkClaimed := func(object client.Object) error {
		return errors.Join(
			checkEqual("label", policyID, object.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel]),
			checkEqual("name", policy.Name, object.GetAnnotations()[policyv1alpha1.PropagationPolicyNameAnnotation]),
			checkEqual("namespace", policy.Namespace, object.GetAnnotations()[policyv1alpha1.PropagationPolicyNamespaceAnnotation]))
	}
	stored := await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return checkClaimed(d) })

	rb := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(checkClaimed(b),
			checkEqual("clusters", []workv1alpha2.TargetCluster{{Name: member1, Replicas: 2}}, b.Spec.Clusters),
			checkEqual("finalizers", []string{workv1alpha2.BindingControllerFinalizer}, b.Finalizers),
			checkEqual("owner", string(stored.UID), string(metav1.GetControllerOf(b).UID)),
			checkEqual("resource", stored.UID, b.Spec.Resource.UID),
			checkEqual("replicas", int32(2), b.Spec.Replicas),
			checkEqual("conflict resolution", policyv1alpha1.ConflictAbort, b.Spec.ConflictResolution),
			checkEqual("scheduler", policyv1alpha1.DefaultSchedulerName, b.Spec.SchedulerName))
	})
	bindingID := rb.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	if bindingID == "" {
		t.Fatal("the binding has no permanent id")
	}
	if want := "web-deployment"; rb.Name != want {
		t.Errorf("the name of the binding is %q, want %q", rb.Name, want)
	}

	memberWork := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return errors.Join(
			checkEqual("permanent ID of the binding", bindingID, w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]),
			checkEqual("name of the binding", rb.Name, w.Annotations[workv1alpha2.ResourceBindingNameAnnotation]),
			checkEqual("namespace of the binding", rb.Namespace, w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation]),
			checkEqual("finalizers", []string{workv1alpha1.ExecutionFinalizer}, w.Finalizers))
	})
	workID := memberWork.Labels[workv1alpha1.WorkPermanentIDLabel]
	if workID == "" {
		t.Fatal("the Work has no permanent id")
	}

	created := awaitInMember(t, env, member1, template, exists)
	for key, want := range map[string]string{
		workv1alpha1.ManagedByKarmadaLabel:               workv1alpha1.ManagedByKarmadaLabelValue,
		workv1alpha1.WorkPermanentIDLabel:                workID,
		workv1alpha2.ResourceBindingPermanentIDLabel:     bindingID,
		policyv1alpha1.PropagationPolicyPermanentIDLabel: policyID,
		"app": "web",
	} {
		if got := created.Labels[key]; got != want {
			t.Errorf("label %s in the member is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{
		workv1alpha1.WorkNameAnnotation:                   memberWork.Name,
		workv1alpha1.WorkNamespaceAnnotation:              memberWork.Namespace,
		workv1alpha2.ResourceBindingNameAnnotation:        rb.Name,
		workv1alpha2.ResourceBindingNamespaceAnnotation:   rb.Namespace,
		workv1alpha2.ResourceTemplateUIDAnnotation:        string(stored.UID),
		workv1alpha2.ResourceTemplateGenerationAnnotation: strconv.FormatInt(stored.Generation, 10),
		workv1alpha2.ResourceConflictResolutionAnnotation: "abort",
	} {
		if got := created.Annotations[key]; got != want {
			t.Errorf("annotation %s in the member is %q, want %q", key, got, want)
		}
	}
	listedLabels := strings.Split(created.Annotations[workv1alpha2.ManagedLabels], ",")
	if err := checkEqual("labels", len(created.Labels), len(listedLabels)); err != nil {
		t.Errorf("the annotation lists the labels %v, want all of %v", listedLabels, created.Labels)
	}
	if len(created.OwnerReferences) > 0 || len(created.Finalizers) > 0 {
		t.Errorf("the member object has owners %v and finalizers %v", created.OwnerReferences, created.Finalizers)
	}
}

func TestClusterPolicyPropagatesObjectsWithAndWithoutNamespace(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	namespaced := configMap(namespace, "inside")
	clusterScoped := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader:" + namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	policy := clusterPolicyFor(t, env, placementOn(member1, member2), namespaced, clusterScoped)
	cleanUp(t, env, clusterScoped)
	env.Create(t, policy, namespaced, clusterScoped)

	awaitInMember(t, env, member1, namespaced, exists)
	awaitInMember(t, env, member2, namespaced, exists)
	created := awaitInMember(t, env, member2, clusterScoped, exists)
	rb := await(t, env.Karmada, &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader." + namespace + "-clusterrole"},
	}, exists)
	id := rb.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
	if id == "" || created.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != id {
		t.Errorf("the member object has labels %v, the binding's id is %q", created.Labels, id)
	}
	await(t, env.Karmada, namespaced, func(c *corev1.ConfigMap) error {
		return checkEqual("claim", policy.Name, c.Annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation])
	})

	deleteObject(t, env.Karmada, clusterScoped)
	awaitGone(t, memberClient(env, member1), clusterScoped)
	awaitGone(t, memberClient(env, member2), clusterScoped)
	awaitGone(t, env.Karmada, rb)
}

func TestPropagationPolicyPrecedesClusterPropagationPolicy(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	template := configMap(namespace, "selected-twice")
	ofLocal, ofGlobal := configMap(namespace, "of-policy"), configMap(namespace, "of-cluster-policy")
	low, high := int32(-5), int32(100)
	local := policyFor(t, placementOn(member1), ofLocal, template)
	global := clusterPolicyFor(t, env, placementOn(member2), ofGlobal, template)
	local.Spec.Priority, global.Spec.Priority = &low, &high
	env.Create(t, global, local, ofLocal, ofGlobal)
	// A claimed template stays with its policy. So both policies must be observed before the
	// template is created.
	awaitInMember(t, env, member1, ofLocal, exists)
	awaitInMember(t, env, member2, ofGlobal, exists)
	env.Create(t, template)

	awaitInMember(t, env, member1, template, exists)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			checkEqual("clusters", []workv1alpha2.TargetCluster{{Name: member1}}, b.Spec.Clusters),
			checkEqual("claim", "", b.Annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]))
	})
}

func TestDeletedPolicyKeepsPropagatedObjectsForANewPolicy(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "kept")
	first := policyFor(t, placementOn(member1), template)
	env.Create(t, first, template)
	created := awaitInMember(t, env, member1, template, exists)

	deleteObject(t, env.Karmada, first)
	awaitGone(t, env.Karmada, first)
	await(t, env.Karmada, template, func(c *corev1.ConfigMap) error {
		return checkEqual("claim", "", c.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})
	rb := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("claim", "", b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})

	second := policyFor(t, placementOn(member1, member2), template)
	second.Name = "second"
	env.Create(t, second)
	awaitInMember(t, env, member2, template, exists)
	kept := awaitInMember(t, env, member1, template, exists)
	if kept.UID != created.UID {
		t.Error("the object was recreated")
	}
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error { return checkEqual("binding", rb.UID, b.UID) })
}
