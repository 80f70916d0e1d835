package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// The tests of this file cause mass deletions. So each has its environment for itself.

// manyTemplates is the number of templates that createManyTemplates creates. It is more than the
// limit for deletions after a change of a Cluster.
const manyTemplates = 25

// createManyTemplates creates ConfigMaps that one policy propagates to one member.
func createManyTemplates(t testing.TB, env *testenv.Env, cluster, scheduler string) []*corev1.ConfigMap {
	t.Helper()
	return createManyTemplatesOn(t, env, placementOn(cluster), scheduler)
}

// createManyTemplatesOn does the same as createManyTemplates with a given placement.
func createManyTemplatesOn(t testing.TB, env *testenv.Env, placement policyv1alpha1.Placement, scheduler string) []*corev1.ConfigMap {
	t.Helper()
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	var objects []client.Object
	for i := range manyTemplates {
		template := configMap(namespace, fmt.Sprintf("template-%02d", i))
		templates, objects = append(templates, template), append(objects, template)
	}
	policy := policyFor(t, placement, objects...)
	policy.Spec.SchedulerName = scheduler
	env.Create(t, append([]client.Object{policy}, objects...)...)
	return templates
}

// uidOf returns the UID of an object in a member, or an empty UID if the member does not have
// it.
func uidOf(ctx context.Context, env *testenv.Env, cluster string, object client.Object) (types.UID, error) {
	found := emptyObject(object)
	err := memberClient(env, cluster).Get(ctx, client.ObjectKeyFromObject(object), found)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	return found.GetUID(), nil
}

// awaitRecreated waits until a Work with another UID is applied.
func awaitRecreated(t testing.TB, env *testenv.Env, before *workv1alpha1.Work) {
	t.Helper()
	await(t, env.Karmada, before, func(w *workv1alpha1.Work) error {
		if w.UID == before.UID {
			return errors.New("the object is not recreated yet")
		}
		return isApplied(w)
	})
}

func TestManualDeletionOfAWorkKeepsTheMemberObject(t *testing.T) {
	env := alone(t)
	template := configMap(env.Namespace(t), "wanted")
	env.Create(t, policyFor(t, placementOn(member3), template), template)
	memberWork := await(t, env.Karmada, workOf(t, member3, template), isApplied)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: template.Namespace}}
	ofNamespace := await(t, env.Karmada, workOf(t, member3, namespace), isApplied)
	uids := map[client.Object]types.UID{
		template:  awaitInMember(t, env, member3, template, exists).UID,
		namespace: awaitInMember(t, env, member3, namespace, exists).UID,
	}
	for _, deleted := range []*workv1alpha1.Work{memberWork, ofNamespace} {
		deleteObject(t, env.Karmada, deleted)
		awaitRecreated(t, env, deleted)
	}
	for object, uid := range uids {
		if got, err := uidOf(t.Context(), env, member3, object); err != nil || got != uid {
			t.Errorf("%s %s was recreated: UID %q, want %q, error %v", selectorOf(t, object).Kind, object.GetName(), got, uid, err)
		}
	}
	// The new Work owns the object.
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	awaitInMember(t, env, member3, template, hasColor("green"))
	deleteObject(t, env.Karmada, template)
	awaitGone(t, memberClient(env, member3), template)
}

func TestManualDeletionOfAnExecutionNamespaceKeepsMemberObjects(t *testing.T) {
	env := alone(t)
	templates := createManyTemplates(t, env, member3, "")
	uids := map[string]types.UID{}
	var works []*workv1alpha1.Work
	for _, template := range templates {
		works = append(works, await(t, env.Karmada, workOf(t, member3, template), isApplied))
		uids[template.Name] = awaitInMember(t, env, member3, template, exists).UID
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(member3)}}
	old := await(t, env.Karmada, ns, exists)
	deleteObject(t, env.Karmada, ns)
	testenv.Eventually(t, "a new execution namespace", func(ctx context.Context) error {
		// Any change of the Cluster makes the control plane reconcile it.
		cluster := clusterNamed(member3)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		cluster.Annotations = map[string]string{"touched": time.Now().String()}
		if err := env.Karmada.Update(ctx, cluster); err != nil {
			return err
		}
		fresh := &corev1.Namespace{}
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(ns), fresh); err != nil {
			return err
		}
		if fresh.UID == old.UID {
			return errors.New("the object is not recreated yet")
		}
		return nil
	})
	for _, memberWork := range works {
		awaitRecreated(t, env, memberWork)
	}
	for _, template := range templates {
		if got, err := uidOf(t.Context(), env, member3, template); err != nil || got != uids[template.Name] {
			t.Errorf("%s was recreated: UID %q, want %q, error %v", template.Name, got, uids[template.Name], err)
		}
	}
}

func TestMassDeletionByAUserIsNotHeld(t *testing.T) {
	env := alone(t)
	templates := createManyTemplates(t, env, member3, "")
	for _, template := range templates {
		awaitInMember(t, env, member3, template, exists)
	}
	if err := env.Karmada.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(templates[0].Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, template := range templates {
		awaitGone(t, memberClient(env, member3), template)
		awaitGone(t, env.Karmada, workOf(t, member3, template))
	}
}

func TestUnexplainedDeletionIsHeld(t *testing.T) {
	env := alone(t)
	// The test itself sets the clusters of these templates, and removes the clusters without a
	// reason.
	templates := createManyTemplates(t, env, member3, "careless")
	assign := func(template *corev1.ConfigMap, clusters ...workv1alpha2.TargetCluster) {
		t.Helper()
		rb := await(t, env.Karmada, bindingOf(t, template), exists)
		testenv.Update(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = clusters })
	}
	uids := map[string]types.UID{}
	for _, template := range templates {
		assign(template, workv1alpha2.TargetCluster{Name: member3})
		uids[template.Name] = awaitInMember(t, env, member3, template, exists).UID
	}
	began := time.Now()
	for _, template := range templates {
		assign(template)
	}

	for _, template := range templates {
		await(t, env.Karmada, workOf(t, member3, template), func(w *workv1alpha1.Work) error {
			return checkCondition(w.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, workv1alpha1.WorkNotReplacedReason, "The clusters of the binding were removed")
		})
	}
	testenv.Holds(t, "the objects of held deletions", quietPeriod, func(ctx context.Context) error {
		for _, template := range templates {
			if uid, err := uidOf(ctx, env, member3, template); err != nil || uid != uids[template.Name] {
				return fmt.Errorf("%s: %q, %w", template.Name, uid, err)
			}
		}
		return nil
	})

	// One template gets its cluster back, and its object stays.
	rescheduled := templates[0]
	memberWork := await(t, env.Karmada, workOf(t, member3, rescheduled), exists)
	assign(rescheduled, workv1alpha2.TargetCluster{Name: member3})
	confirmDeletions := func(confirmed time.Time) {
		t.Helper()
		testenv.Update(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[workv1alpha1.ConfirmDeletionsAnnotation] = confirmed.UTC().Format(time.RFC3339)
		})
	}
	// A confirmation with an earlier time confirms nothing, but makes Karmada reconcile the
	// Cluster.
	confirmDeletions(began.Add(-time.Hour))
	awaitRecreated(t, env, memberWork)
	// The user confirms the other deletions.
	confirmDeletions(time.Now())
	for _, template := range templates[1:] {
		awaitGone(t, env.Karmada, workOf(t, member3, template))
		awaitGone(t, memberClient(env, member3), template)
	}
	if uid, err := uidOf(t.Context(), env, member3, rescheduled); err != nil || uid != uids[rescheduled.Name] {
		t.Errorf("%s was recreated: UID %q, want %q, error %v", rescheduled.Name, uid, uids[rescheduled.Name], err)
	}
}
