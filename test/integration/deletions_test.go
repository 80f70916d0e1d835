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

// configMapUIDs returns the UIDs of the ConfigMaps in the member.
func (p *pullCluster) configMapUIDs(t *testing.T, templates []*corev1.ConfigMap) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, template := range templates {
		found[template.Name] = await(t, p.member.Client, configMap(template.Namespace, template.Name), exists).UID
	}
	return found
}

// awaitWorksRecreated waits until every Work is replaced by a new one that is applied.
func awaitWorksRecreated(t *testing.T, env *testenv.Env, oldWorks []*workv1alpha1.Work) {
	t.Helper()
	for _, oldWork := range oldWorks {
		awaitRecreated(t, env, oldWork)
	}
}

// TestDeletedWorksOfPullClusterKeepMemberObjects deletes all Works of a pull cluster, then their
// namespace. The member objects must keep their UIDs.
func TestDeletedWorksOfPullClusterKeepMemberObjects(t *testing.T) {
	// Not shared: the deletion of the execution namespace removes the permissions of the agent. If
	// another test deleted its namespace meanwhile, the agent could not end the deletion of the
	// Work of that namespace, and this Work would block the deletion of the execution namespace.
	env := alone(t)
	p := newPullCluster(t, env, "pull-guarded")
	p.startAgent(t)
	p.awaitReady(t)
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	var objects []client.Object
	for i := range 30 {
		template := configMap(namespace, fmt.Sprintf("kept-%02d", i))
		templates, objects = append(templates, template), append(objects, template)
	}
	env.Create(t, append([]client.Object{policyFor(t, placementOn(p.name), objects...)}, objects...)...)
	works := func() (found []*workv1alpha1.Work) {
		for _, template := range templates {
			found = append(found, await(t, env.Karmada, workOf(t, p.name, template), isApplied))
		}
		return found
	}
	before, uids := works(), p.configMapUIDs(t, templates)
	inExecutionNamespace := client.InNamespace(work.ExecutionNamespace(p.name))
	if err := env.Karmada.DeleteAllOf(t.Context(), &workv1alpha1.Work{}, inExecutionNamespace); err != nil {
		t.Fatal(err)
	}
	awaitWorksRecreated(t, env, before)
	checkUIDsUnchanged := func(context.Context) error {
		return checkEqual("UIDs", fmt.Sprint(uids), fmt.Sprint(p.configMapUIDs(t, templates)))
	}
	if err := checkUIDsUnchanged(t.Context()); err != nil {
		t.Error(err)
	}

	before = works()
	executionNamespace := &corev1.Namespace{}
	executionNamespace.Name = work.ExecutionNamespace(p.name)
	old := await(t, env.Karmada, executionNamespace.DeepCopy(), exists)
	deleteObject(t, env.Karmada, executionNamespace.DeepCopy())
	await(t, env.Karmada, executionNamespace, func(n *corev1.Namespace) error {
		if n.UID == old.UID {
			return fmt.Errorf("namespace %s has the UID of the old one", n.Name)
		}
		return nil
	})
	// Create the RBAC objects of the execution namespace again, because they were deleted together
	// with the namespace.
	p.grantAgentRBAC(t)
	awaitWorksRecreated(t, env, before)
	if err := checkUIDsUnchanged(t.Context()); err != nil {
		t.Error(err)
	}

	// Deletions by the user are still propagated.
	deleteObject(t, env.Karmada, templates[0])
	awaitGone(t, p.member.Client, configMap(namespace, templates[0].Name))
	templates = templates[1:]
	delete(uids, "kept-00")
	testenv.Holds(t, "UIDs of the remaining objects", quietPeriod, checkUIDsUnchanged)
}

// setClusterLabels sets a label of Clusters, or removes the label if the value is empty.
func setClusterLabels(t *testing.T, env *testenv.Env, key, value string, clusters ...string) {
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

// TestClusterLabelLossHoldsDeletions removes a Cluster label that the placement of many templates
// selects, as a mistake in a repository of Clusters does. Not shared: a mass deletion affects other
// tests.
func TestClusterLabelLossHoldsDeletions(t *testing.T) {
	env := alone(t)
	const key = "guard.example.org/tier"
	setClusterLabels(t, env, key, "gold", member2, member3)
	t.Cleanup(func() { setClusterLabels(t, env, key, "", member2, member3) })
	placement := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "gold"}},
	}}
	templates := createManyTemplatesOn(t, env, placement, "")
	uids := map[string]types.UID{}
	for _, template := range templates {
		uids[template.Name] = awaitInMember(t, env, member3, template, exists).UID
	}
	setClusterLabels(t, env, key, "", member3)
	for _, template := range templates {
		await(t, env.Karmada, workOf(t, member3, template), func(w *workv1alpha1.Work) error {
			return checkCondition(w.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, "ClusterChanged", "Cluster "+member3+" does not match")
		})
	}
	setClusterLabels(t, env, key, "gold", member3)
	for _, template := range templates {
		await(t, env.Karmada, workOf(t, member3, template), isApplied)
		awaitInMember(t, env, member3, template, func(c *corev1.ConfigMap) error { return checkEqual("uid", uids[template.Name], c.UID) })
	}
}

// TestUnservedKindDoesNotProveAbsence deletes templates whose kind the member does not serve. First
// the member serves the kind in another version than the Work names. Then it serves no version, but
// the definition keeps the objects. At last the kind is removed while one version of its API group
// cannot be read.
func TestUnservedKindDoesNotProveAbsence(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member1, namespace)
	kind := newCRD("springs.example.org", "Spring", "springs")
	for _, apiClient := range []client.Client{env.Karmada, memberClient(env, member1)} {
		if err := apiClient.Create(t.Context(), kind.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(apiClient.Delete(context.WithoutCancel(t.Context()), kind.DeepCopy())); err != nil {
				t.Error(err)
			}
		})
	}
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "springs"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "springs.example.org/v1", Kind: "Spring"}}, Placement: placementOn(member1),
		},
	})
	newSpring := func(version, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "springs.example.org/" + version, "kind": "Spring", "metadata": map[string]any{"namespace": namespace, "name": name},
		}}
	}
	for _, name := range []string{"first", "second", "third"} {
		createCog(t, env, newSpring("v1", name))
		await(t, env.Karmada, workOf(t, member1, newSpring("v1", name)), isApplied)
	}

	// The member serves version v2 in place of v1.
	served := func(name string, served bool) map[string]any {
		return map[string]any{"name": name, "served": served, "storage": served,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	testenv.Update(t, memberClient(env, member1), kind.DeepCopy(), func(c *unstructured.Unstructured) {
		if err := unstructured.SetNestedSlice(c.Object, []any{served("v1", false), served("v2", true)}, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
	})
	testenv.Eventually(t, "the member serves v2 and not v1", func(ctx context.Context) error {
		if err := memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(newSpring("v2", "first")), newSpring("v2", "first")); err != nil {
			return err
		}
		if memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(newSpring("v1", "first")), newSpring("v1", "first")) == nil {
			return errors.New("v1 is served")
		}
		return nil
	})
	deleteObject(t, env.Karmada, newSpring("v1", "first"))
	awaitGone(t, env.Karmada, workOf(t, member1, newSpring("v1", "first")))
	if err := checkAbsent(t.Context(), memberClient(env, member1), newSpring("v2", "first")); err != nil {
		t.Errorf("the member object was not deleted: %v", err)
	}

	// A definition without a served version keeps its objects.
	awaitHeldDeletion := func(name, message string) *workv1alpha1.Work {
		return await(t, env.Karmada, workOf(t, member1, newSpring("v1", name)), func(w *workv1alpha1.Work) error {
			return checkCondition(w.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, "KindNotServed", message)
		})
	}
	setV2Served := func(isServed bool) {
		testenv.Update(t, memberClient(env, member1), kind.DeepCopy(), func(c *unstructured.Unstructured) {
			second := served("v2", isServed)
			second["storage"] = true
			if err := unstructured.SetNestedSlice(c.Object, []any{served("v1", false), second}, "spec", "versions"); err != nil {
				t.Fatal(err)
			}
		})
	}
	setV2Served(false)
	testenv.Eventually(t, "the member serves no version", func(ctx context.Context) error {
		if memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(newSpring("v2", "third")), newSpring("v2", "third")) == nil {
			return errors.New("v2 is served")
		}
		return nil
	})
	deleteObject(t, env.Karmada, newSpring("v1", "third"))
	heldThird := awaitHeldDeletion("third", "cluster "+member1+" does not say whether it has objects of kind Spring in group \"springs.example.org\"")
	setV2Served(true)
	awaitGone(t, env.Karmada, heldThird)
	if err := checkAbsent(t.Context(), memberClient(env, member1), newSpring("v2", "third")); err != nil {
		t.Errorf("the member object was not deleted: %v", err)
	}

	// While one version of the group cannot be read, Karmada does not know which objects of the
	// group exist.
	brokenAPIService := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v3.springs.example.org"},
		"spec": map[string]any{
			"group": "springs.example.org", "version": "v3", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "nowhere"},
		},
	}}
	if err := memberClient(env, member1).Create(t.Context(), brokenAPIService.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(memberClient(env, member1).Delete(context.WithoutCancel(t.Context()), brokenAPIService.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
	deleteObject(t, memberClient(env, member1), kind.DeepCopy())
	awaitGone(t, memberClient(env, member1), kind.DeepCopy())
	deleteObject(t, env.Karmada, newSpring("v1", "second"))
	heldSecond := awaitHeldDeletion("second", "cluster "+member1+" does not say whether it has objects of kind Spring in group \"springs.example.org\"")
	deleteObject(t, memberClient(env, member1), brokenAPIService.DeepCopy())
	awaitGone(t, env.Karmada, heldSecond)
}
