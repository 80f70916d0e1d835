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

func TestTemplateIsPropagatedWhicheverOfItAndItsPolicyComesFirst(t *testing.T) {
	env := shared(t)
	for name, order := range map[string]func(t *testing.T, template, policy client.Object){
		"the policy first":   func(t *testing.T, template, policy client.Object) { env.Create(t, policy, template) },
		"the template first": func(t *testing.T, template, policy client.Object) { env.Create(t, template, policy) },
		"the template long before": func(t *testing.T, template, policy client.Object) {
			env.Create(t, template)
			// An object that is created later is propagated: the template was looked at.
			other := configMap(template.GetNamespace(), "other")
			env.Create(t, policyFor(t, on(member1), other), other)
			inMember(t, env, member1, other, exists)
			env.Create(t, policy)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template := deployment(env.Namespace(t), "web", 2)
			order(t, template, policyFor(t, on(member1, member2), template))
			inMember(t, env, member1, template, exists)
			inMember(t, env, member2, template, exists)
			testenv.Eventually(t, "nothing in member3", func(ctx context.Context) error {
				return absent(ctx, member(env, member3), template)
			})
		})
	}
}

func TestPolicySelectsByNameByLabelsOrByKind(t *testing.T) {
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
		"a name makes labels meaningless": {
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
					ResourceSelectors: []policyv1alpha1.ResourceSelector{c.selector}, Placement: on(member1),
				},
			}, a, b)
			for _, selected := range c.selects {
				inMember(t, env, member1, configMap(namespace, selected), exists)
			}
			env.Create(t, policyFor(t, on(member1), last), last)
			inMember(t, env, member1, last, exists)
			testenv.Eventually(t, "bindings of what is selected", func(ctx context.Context) error {
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

func TestMarksLeadFromThePolicyToTheObjectInTheMember(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 2)
	policy := policyFor(t, on(member1), template)
	policy.Name = "propagate-web"
	env.Create(t, policy, template)

	policy = await(t, env.Karmada, policy, exists)
	policyID := policy.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel]
	if policyID == "" || len(policy.Finalizers) != 1 || policy.Finalizers[0] != policyv1alpha1.PropagationPolicyControllerFinalizer {
		t.Fatalf("the policy has labels %v and finalizers %v", policy.Labels, policy.Finalizers)
	}
	claimed := func(object client.Object) error {
		return errors.Join(
			same("label", policyID, object.GetLabels()[policyv1alpha1.PropagationPolicyPermanentIDLabel]),
			same("name", policy.Name, object.GetAnnotations()[policyv1alpha1.PropagationPolicyNameAnnotation]),
			same("namespace", policy.Namespace, object.GetAnnotations()[policyv1alpha1.PropagationPolicyNamespaceAnnotation]))
	}
	stored := await(t, env.Karmada, template, func(d *appsv1.Deployment) error { return claimed(d) })

	bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(claimed(b),
			same("clusters", []workv1alpha2.TargetCluster{{Name: member1, Replicas: 2}}, b.Spec.Clusters),
			same("finalizers", []string{workv1alpha2.BindingControllerFinalizer}, b.Finalizers),
			same("owner", string(stored.UID), string(metav1.GetControllerOf(b).UID)),
			same("resource", stored.UID, b.Spec.Resource.UID),
			same("replicas", int32(2), b.Spec.Replicas),
			same("conflict resolution", policyv1alpha1.ConflictAbort, b.Spec.ConflictResolution),
			same("scheduler", policyv1alpha1.DefaultSchedulerName, b.Spec.SchedulerName))
	})
	bindingID := bound.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]
	if bindingID == "" {
		t.Fatal("the binding has no permanent id")
	}
	if want := "web-deployment"; bound.Name != want {
		t.Errorf("the binding is called %q, want %q", bound.Name, want)
	}

	of := await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return errors.Join(
			same("binding's id", bindingID, w.Labels[workv1alpha2.ResourceBindingPermanentIDLabel]),
			same("binding's name", bound.Name, w.Annotations[workv1alpha2.ResourceBindingNameAnnotation]),
			same("binding's namespace", bound.Namespace, w.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation]),
			same("finalizers", []string{workv1alpha1.ExecutionFinalizer}, w.Finalizers))
	})
	workID := of.Labels[workv1alpha1.WorkPermanentIDLabel]
	if workID == "" {
		t.Fatal("the Work has no permanent id")
	}

	made := inMember(t, env, member1, template, exists)
	for key, want := range map[string]string{
		workv1alpha1.ManagedByKarmadaLabel:               workv1alpha1.ManagedByKarmadaLabelValue,
		workv1alpha1.WorkPermanentIDLabel:                workID,
		workv1alpha2.ResourceBindingPermanentIDLabel:     bindingID,
		policyv1alpha1.PropagationPolicyPermanentIDLabel: policyID,
		"app": "web",
	} {
		if got := made.Labels[key]; got != want {
			t.Errorf("label %s in the member is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{
		workv1alpha1.WorkNameAnnotation:                   of.Name,
		workv1alpha1.WorkNamespaceAnnotation:              of.Namespace,
		workv1alpha2.ResourceBindingNameAnnotation:        bound.Name,
		workv1alpha2.ResourceBindingNamespaceAnnotation:   bound.Namespace,
		workv1alpha2.ResourceTemplateUIDAnnotation:        string(stored.UID),
		workv1alpha2.ResourceTemplateGenerationAnnotation: strconv.FormatInt(stored.Generation, 10),
		workv1alpha2.ResourceConflictResolutionAnnotation: "abort",
	} {
		if got := made.Annotations[key]; got != want {
			t.Errorf("annotation %s in the member is %q, want %q", key, got, want)
		}
	}
	listed := strings.Split(made.Annotations[workv1alpha2.ManagedLabels], ",")
	if err := same("labels", len(made.Labels), len(listed)); err != nil {
		t.Errorf("the listed labels %v are not all of %v", listed, made.Labels)
	}
	if len(made.OwnerReferences) > 0 || len(made.Finalizers) > 0 {
		t.Errorf("the member's object has owners %v and finalizers %v", made.OwnerReferences, made.Finalizers)
	}
}

func TestClusterPolicyPropagatesObjectsWithAndWithoutNamespace(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	inside := configMap(namespace, "inside")
	outside := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader:" + namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	policy := clusterPolicyFor(t, env, on(member1, member2), inside, outside)
	cleanUp(t, env, outside)
	env.Create(t, policy, inside, outside)

	inMember(t, env, member1, inside, exists)
	inMember(t, env, member2, inside, exists)
	made := inMember(t, env, member2, outside, exists)
	bound := await(t, env.Karmada, &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader." + namespace + "-clusterrole"},
	}, exists)
	id := bound.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
	if id == "" || made.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] != id {
		t.Errorf("the member's object has labels %v, the binding's id is %q", made.Labels, id)
	}
	await(t, env.Karmada, inside, func(c *corev1.ConfigMap) error {
		return same("claim", policy.Name, c.Annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation])
	})

	deleteObject(t, env.Karmada, outside)
	awaitGone(t, member(env, member1), outside)
	awaitGone(t, member(env, member2), outside)
	awaitGone(t, env.Karmada, bound)
}

func TestPolicyOfTheNamespaceBeatsEveryClusterPolicy(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "contested")
	low, high := int32(-5), int32(100)
	local, global := policyFor(t, on(member1), template), clusterPolicyFor(t, env, on(member2), template)
	local.Spec.Priority, global.Spec.Priority = &low, &high
	env.Create(t, global, local, template)

	inMember(t, env, member1, template, exists)
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(
			same("clusters", []workv1alpha2.TargetCluster{{Name: member1}}, b.Spec.Clusters),
			same("claim", "", b.Annotations[policyv1alpha1.ClusterPropagationPolicyAnnotation]))
	})
}

func TestDeletedPolicyLeavesWhatItPropagatedAndANewOneTakesOver(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "kept")
	first := policyFor(t, on(member1), template)
	env.Create(t, first, template)
	made := inMember(t, env, member1, template, exists)

	deleteObject(t, env.Karmada, first)
	awaitGone(t, env.Karmada, first)
	await(t, env.Karmada, template, func(c *corev1.ConfigMap) error {
		return same("claim", "", c.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})
	bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return same("claim", "", b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})

	second := policyFor(t, on(member1, member2), template)
	second.Name = "second"
	env.Create(t, second)
	inMember(t, env, member2, template, exists)
	kept := inMember(t, env, member1, template, exists)
	if kept.UID != made.UID {
		t.Error("the object was deleted in between")
	}
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error { return same("binding", bound.UID, b.UID) })
}
