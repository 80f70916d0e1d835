package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// uids returns the UIDs of ConfigMaps as the member of the agent holds them.
func (p *pulled) uids(t *testing.T, templates []*corev1.ConfigMap) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, template := range templates {
		found[template.Name] = await(t, p.member.Client, configMap(template.Namespace, template.Name), exists).UID
	}
	return found
}

// awaitAppliedAnew waits until every Work was replaced by another one that is applied.
func awaitAppliedAnew(t *testing.T, env *testenv.Env, before []*workv1alpha1.Work) {
	t.Helper()
	for _, of := range before {
		again(t, env, of)
	}
}

// TestWorksOfAPullClusterThatAreDeletedByHandTakeNothingAway deletes all Works of a
// cluster with an agent, then their namespace.
func TestWorksOfAPullClusterThatAreDeletedByHandTakeNothingAway(t *testing.T) {
	env := alone(t)
	p := newPulled(t, env, "pull-guarded")
	p.run(t)
	p.awaitReady(t)
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	var objects []client.Object
	for i := range 30 {
		template := configMap(namespace, fmt.Sprintf("kept-%02d", i))
		templates, objects = append(templates, template), append(objects, template)
	}
	env.Create(t, append([]client.Object{policyFor(t, on(p.name), objects...)}, objects...)...)
	works := func() (found []*workv1alpha1.Work) {
		for _, template := range templates {
			found = append(found, await(t, env.Karmada, workOf(t, p.name, template), applied))
		}
		return found
	}
	before, uids := works(), p.uids(t, templates)
	inSpace := client.InNamespace(work.ExecutionNamespace(p.name))
	if err := env.Karmada.DeleteAllOf(t.Context(), &workv1alpha1.Work{}, inSpace); err != nil {
		t.Fatal(err)
	}
	awaitAppliedAnew(t, env, before)
	unchanged := func(context.Context) error { return same("UIDs", fmt.Sprint(uids), fmt.Sprint(p.uids(t, templates))) }
	if err := unchanged(t.Context()); err != nil {
		t.Error(err)
	}

	before = works()
	space := &corev1.Namespace{}
	space.Name = work.ExecutionNamespace(p.name)
	old := await(t, env.Karmada, space.DeepCopy(), exists)
	deleteObject(t, env.Karmada, space.DeepCopy())
	await(t, env.Karmada, space, func(n *corev1.Namespace) error {
		if n.UID == old.UID {
			return fmt.Errorf("namespace %s is still the old one", n.Name)
		}
		return nil
	})
	// The rights of the agent in the namespace went with it.
	p.grantRights(t)
	awaitAppliedAnew(t, env, before)
	if err := unchanged(t.Context()); err != nil {
		t.Error(err)
	}

	// What the user deletes still goes.
	deleteObject(t, env.Karmada, templates[0])
	awaitGone(t, p.member.Client, configMap(namespace, templates[0].Name))
	templates = templates[1:]
	delete(uids, "kept-00")
	testenv.Holds(t, "what remains", quiet, unchanged)
}

// setLabel gives Clusters a label, or takes it away if the value is empty.
func setLabel(t *testing.T, env *testenv.Env, key, value string, clusters ...string) {
	t.Helper()
	for _, name := range clusters {
		testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) {
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[key] = value
			if value == "" {
				delete(c.Labels, key)
			}
		})
	}
}

// TestALabelThatAClusterLosesTakesNothingAway drops a label under many templates, as a
// mistake in a repository of Clusters does. Not parallel: it makes a mistake on a large
// scale.
func TestALabelThatAClusterLosesTakesNothingAway(t *testing.T) {
	env := alone(t)
	awaitNoWrites(t, env)
	restart(t, env)
	const key = "guard.example.org/tier"
	setLabel(t, env, key, "gold", member2, member3)
	t.Cleanup(func() { setLabel(t, env, key, "", member2, member3) })
	placement := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "gold"}},
	}}
	templates := flockOn(t, env, member3, placement, "")
	uids := map[string]types.UID{}
	for _, template := range templates {
		uids[template.Name] = inMember(t, env, member3, template, exists).UID
	}
	setLabel(t, env, key, "", member3)
	for _, template := range templates {
		await(t, env.Karmada, workOf(t, member3, template), func(w *workv1alpha1.Work) error {
			return condition(w.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, "ClusterChanged", "Cluster "+member3+" does not match")
		})
	}
	setLabel(t, env, key, "gold", member3)
	for _, template := range templates {
		await(t, env.Karmada, workOf(t, member3, template), applied)
		inMember(t, env, member3, template, func(c *corev1.ConfigMap) error { return same("uid", uids[template.Name], c.UID) })
	}
}

// TestAKindThatAMemberServesInAnotherVersionIsNotGone removes the version that a Work
// carries, then all versions while the definition keeps the objects, and then the kind
// while its group cannot be read.
func TestAKindThatAMemberServesInAnotherVersionIsNotGone(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	namespaceIn(t, env, member1, namespace)
	kind := definition("springs.example.org", "Spring", "springs")
	for _, side := range []client.Client{env.Karmada, member(env, member1)} {
		if err := side.Create(t.Context(), kind.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(side.Delete(context.WithoutCancel(t.Context()), kind.DeepCopy())); err != nil {
				t.Error(err)
			}
		})
	}
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "springs"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "springs.example.org/v1", Kind: "Spring"}}, Placement: on(member1),
		},
	})
	spring := func(version, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "springs.example.org/" + version, "kind": "Spring", "metadata": map[string]any{"namespace": namespace, "name": name},
		}}
	}
	for _, name := range []string{"first", "second", "third"} {
		storeCog(t, env, spring("v1", name))
		await(t, env.Karmada, workOf(t, member1, spring("v1", name)), applied)
	}

	// The member goes over to version v2.
	served := func(name string, served bool) map[string]any {
		return map[string]any{"name": name, "served": served, "storage": served,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	testenv.Update(t, member(env, member1), kind.DeepCopy(), func(c *unstructured.Unstructured) {
		if err := unstructured.SetNestedSlice(c.Object, []any{served("v1", false), served("v2", true)}, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
	})
	testenv.Eventually(t, "the member serves v2 and not v1", func(ctx context.Context) error {
		if err := member(env, member1).Get(ctx, client.ObjectKeyFromObject(spring("v2", "first")), spring("v2", "first")); err != nil {
			return err
		}
		if member(env, member1).Get(ctx, client.ObjectKeyFromObject(spring("v1", "first")), spring("v1", "first")) == nil {
			return errors.New("v1 is served")
		}
		return nil
	})
	deleteObject(t, env.Karmada, spring("v1", "first"))
	awaitGone(t, env.Karmada, workOf(t, member1, spring("v1", "first")))
	if err := absent(t.Context(), member(env, member1), spring("v2", "first")); err != nil {
		t.Errorf("the object was left behind: %v", err)
	}

	// A definition that serves no version keeps its objects.
	held := func(name, message string) *workv1alpha1.Work {
		return await(t, env.Karmada, workOf(t, member1, spring("v1", name)), func(w *workv1alpha1.Work) error {
			return condition(w.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, "KindNotServed", message)
		})
	}
	serveSecond := func(is bool) {
		testenv.Update(t, member(env, member1), kind.DeepCopy(), func(c *unstructured.Unstructured) {
			second := served("v2", is)
			second["storage"] = true
			if err := unstructured.SetNestedSlice(c.Object, []any{served("v1", false), second}, "spec", "versions"); err != nil {
				t.Fatal(err)
			}
		})
	}
	serveSecond(false)
	testenv.Eventually(t, "the member serves no version", func(ctx context.Context) error {
		if member(env, member1).Get(ctx, client.ObjectKeyFromObject(spring("v2", "third")), spring("v2", "third")) == nil {
			return errors.New("v2 is served")
		}
		return nil
	})
	deleteObject(t, env.Karmada, spring("v1", "third"))
	kept := held("third", "cluster "+member1+" does not say whether it has objects of kind Spring in group \"springs.example.org\"")
	serveSecond(true)
	awaitGone(t, env.Karmada, kept)
	if err := absent(t.Context(), member(env, member1), spring("v2", "third")); err != nil {
		t.Errorf("the object was left behind: %v", err)
	}

	// Nobody knows what the group holds while one of its versions cannot be read.
	stale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v3.springs.example.org"},
		"spec": map[string]any{
			"group": "springs.example.org", "version": "v3", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "nowhere"},
		},
	}}
	if err := member(env, member1).Create(t.Context(), stale.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(member(env, member1).Delete(context.WithoutCancel(t.Context()), stale.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
	deleteObject(t, member(env, member1), kind.DeepCopy())
	awaitGone(t, member(env, member1), kind.DeepCopy())
	deleteObject(t, env.Karmada, spring("v1", "second"))
	of := held("second", "cluster "+member1+" does not say whether it has objects of kind Spring in group \"springs.example.org\"")
	deleteObject(t, member(env, member1), stale.DeepCopy())
	awaitGone(t, env.Karmada, of)
}
