package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// The tests of this file make mistakes on a large scale, and therefore run alone.

// flockLead is how many more Works a flock has than its member had before, whatever
// the tests before have left there.
const flockLead = 60

// flock is many ConfigMaps that one policy sends to one member, more than half of
// what that holds then.
func flock(t testing.TB, env *testenv.Env, cluster, scheduler string) []*corev1.ConfigMap {
	t.Helper()
	return flockOn(t, env, cluster, on(cluster), scheduler)
}

// flockOn is a flock by another placement that leads to the member.
func flockOn(t testing.TB, env *testenv.Env, cluster string, placement policyv1alpha1.Placement, scheduler string) []*corev1.ConfigMap {
	t.Helper()
	namespace := env.Namespace(t)
	works := &workv1alpha1.WorkList{}
	if err := env.Karmada.List(t.Context(), works, client.InNamespace("karmada-es-"+cluster)); err != nil {
		t.Fatal(err)
	}
	var templates []*corev1.ConfigMap
	var objects []client.Object
	for i := range len(works.Items) + flockLead {
		template := configMap(namespace, fmt.Sprintf("flock-%02d", i))
		templates, objects = append(templates, template), append(objects, template)
	}
	policy := policyFor(t, placement, objects...)
	policy.Spec.SchedulerName = scheduler
	env.Create(t, append([]client.Object{policy}, objects...)...)
	return templates
}

// uidOf is the UID of an object as it is in a member; empty when it is not.
func uidOf(ctx context.Context, env *testenv.Env, cluster string, object client.Object) (types.UID, error) {
	found := empty(object)
	err := member(env, cluster).Get(ctx, client.ObjectKeyFromObject(object), found)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	return found.GetUID(), nil
}

// again waits until a Work was made anew and is applied.
func again(t testing.TB, env *testenv.Env, before *workv1alpha1.Work) {
	t.Helper()
	await(t, env.Karmada, before, func(w *workv1alpha1.Work) error {
		if w.UID == before.UID {
			return errors.New("it is still the old one")
		}
		return applied(w)
	})
}

func TestWorkThatIsDeletedByHandLeavesItsObjectAlone(t *testing.T) {
	env := alone(t)
	template := configMap(env.Namespace(t), "wanted")
	env.Create(t, policyFor(t, on(member3), template), template)
	of := await(t, env.Karmada, workOf(t, member3, template), applied)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: template.Namespace}}
	ofNamespace := await(t, env.Karmada, workOf(t, member3, namespace), applied)
	uids := map[client.Object]types.UID{
		template:  inMember(t, env, member3, template, exists).UID,
		namespace: inMember(t, env, member3, namespace, exists).UID,
	}
	for _, deleted := range []*workv1alpha1.Work{of, ofNamespace} {
		deleteObject(t, env.Karmada, deleted)
		again(t, env, deleted)
	}
	for object, uid := range uids {
		if got, err := uidOf(t.Context(), env, member3, object); err != nil || got != uid {
			t.Errorf("%s %s was replaced: %q instead of %q, %v", selectorOf(t, object).Kind, object.GetName(), got, uid, err)
		}
	}
	// The Work that came after owns the object.
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	inMember(t, env, member3, template, hasColor("green"))
	deleteObject(t, env.Karmada, template)
	awaitGone(t, member(env, member3), template)
}

func TestExecutionNamespaceThatIsDeletedByHandTakesNothingAway(t *testing.T) {
	env := alone(t)
	templates := flock(t, env, member3, "")
	uids := map[string]types.UID{}
	var works []*workv1alpha1.Work
	for _, template := range templates {
		works = append(works, await(t, env.Karmada, workOf(t, member3, template), applied))
		uids[template.Name] = inMember(t, env, member3, template, exists).UID
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(member3)}}
	old := await(t, env.Karmada, space, exists)
	deleteObject(t, env.Karmada, space)
	testenv.Eventually(t, "another execution namespace", func(ctx context.Context) error {
		// Whatever happens to the Cluster lets the control plane look after it.
		cluster := clusterNamed(member3)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		cluster.Annotations = map[string]string{"touched": time.Now().String()}
		if err := env.Karmada.Update(ctx, cluster); err != nil {
			return err
		}
		fresh := &corev1.Namespace{}
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(space), fresh); err != nil {
			return err
		}
		if fresh.UID == old.UID {
			return errors.New("it is still the old one")
		}
		return nil
	})
	for _, of := range works {
		again(t, env, of)
	}
	for _, template := range templates {
		if got, err := uidOf(t.Context(), env, member3, template); err != nil || got != uids[template.Name] {
			t.Errorf("%s was replaced: %q instead of %q, %v", template.Name, got, uids[template.Name], err)
		}
	}
}

func TestManyTemplatesThatTheirUserDeletesGoAtOnce(t *testing.T) {
	env := alone(t)
	templates := flock(t, env, member3, "")
	for _, template := range templates {
		inMember(t, env, member3, template, exists)
	}
	if err := env.Karmada.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(templates[0].Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, template := range templates {
		awaitGone(t, member(env, member3), template)
		awaitGone(t, env.Karmada, workOf(t, member3, template))
	}
}

func TestMassDeletionThatNobodyAskedForIsStopped(t *testing.T) {
	env := alone(t)
	// What the tests before deleted lately counts as what the cluster holds, and
	// makes this deletion a smaller part of it. A start forgets.
	awaitNoWrites(t, env)
	restart(t, env)
	// The test is the scheduler of these templates, and a bad one.
	templates := flock(t, env, member3, "careless")
	assign := func(template *corev1.ConfigMap, clusters ...workv1alpha2.TargetCluster) {
		t.Helper()
		bound := await(t, env.Karmada, bindingOf(t, template), exists)
		testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = clusters })
	}
	uids := map[string]types.UID{}
	for _, template := range templates {
		assign(template, workv1alpha2.TargetCluster{Name: member3})
		uids[template.Name] = inMember(t, env, member3, template, exists).UID
	}
	began := time.Now()
	for _, template := range templates {
		assign(template)
	}

	var stopped []*corev1.ConfigMap
	testenv.Eventually(t, "a part of the objects whose deletion is held", func(ctx context.Context) error {
		stopped = nil
		for _, template := range templates {
			of := workOf(t, member3, template)
			err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(of), of)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				if err := condition(of.Status.Conditions, workv1alpha1.WorkDeletionHeld, metav1.ConditionTrue, "MassDeletionStopped", "A large part"); err != nil {
					return fmt.Errorf("%s: %w", of.Name, err)
				}
				stopped = append(stopped, template)
			}
		}
		if len(stopped) < flockLead/4 {
			return fmt.Errorf("%d are left", len(stopped))
		}
		return nil
	})
	t.Logf("%d of %d objects stayed", len(stopped), len(templates))
	testenv.Eventually(t, "a warning on the Cluster", func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := env.Karmada.List(ctx, events); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.InvolvedObject.Name == member3 && event.Reason == "MassDeletionStopped" && strings.Contains(event.Message, "kubectl annotate cluster "+member3) {
				return nil
			}
		}
		return errors.New("there is none")
	})
	testenv.Holds(t, "what was stopped", quiet, func(ctx context.Context) error {
		for _, template := range stopped {
			if uid, err := uidOf(ctx, env, member3, template); err != nil || uid != uids[template.Name] {
				return fmt.Errorf("%s: %q, %w", template.Name, uid, err)
			}
		}
		return nil
	})

	// One gets its cluster back, and nobody notices that it was to go.
	saved := stopped[0]
	of := await(t, env.Karmada, workOf(t, member3, saved), exists)
	assign(saved, workv1alpha2.TargetCluster{Name: member3})
	wake := func(confirmed time.Time) {
		t.Helper()
		testenv.Update(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[workv1alpha1.ConfirmDeletionsAnnotation] = confirmed.UTC().Format(time.RFC3339)
		})
	}
	// A confirmation of what was before confirms nothing, but is a reason to look.
	wake(began.Add(-time.Hour))
	again(t, env, of)
	// The others were meant to go after all.
	wake(time.Now().Add(time.Second))
	for _, template := range stopped[1:] {
		awaitGone(t, env.Karmada, workOf(t, member3, template))
		awaitGone(t, member(env, member3), template)
	}
	if uid, err := uidOf(t.Context(), env, member3, saved); err != nil || uid != uids[saved.Name] {
		t.Errorf("%s was replaced: %q instead of %q, %v", saved.Name, uid, uids[saved.Name], err)
	}
}
