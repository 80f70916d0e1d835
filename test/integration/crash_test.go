package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

const burstSize = 50

// burst is a set of ConfigMaps that one policy propagates to two members.
type burst struct {
	env       *testenv.Env
	namespace string
	templates []*corev1.ConfigMap
}

func newBurst(env *testenv.Env, namespace string) *burst {
	b := &burst{env: env, namespace: namespace}
	for i := range burstSize {
		b.templates = append(b.templates, configMap(namespace, fmt.Sprintf("burst-%02d", i)))
	}
	return b
}

// burstCounter returns how many objects of a burst satisfy a condition.
type burstCounter func(ctx context.Context, b *burst) (int, error)

func countBindings(env *testenv.Env, matches func(*workv1alpha2.ResourceBinding) bool) burstCounter {
	return func(ctx context.Context, b *burst) (int, error) {
		list := &workv1alpha2.ResourceBindingList{}
		err := env.Karmada.List(ctx, list, client.InNamespace(b.namespace))
		n := 0
		for i := range list.Items {
			if matches(&list.Items[i]) {
				n++
			}
		}
		return n, err
	}
}

func countWorks(env *testenv.Env, cluster string) burstCounter {
	return func(ctx context.Context, b *burst) (int, error) {
		list := &workv1alpha1.WorkList{}
		err := env.Karmada.List(ctx, list, client.InNamespace(work.ExecutionNamespace(cluster)))
		n := 0
		for i := range list.Items {
			if list.Items[i].Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] == b.namespace {
				n++
			}
		}
		return n, err
	}
}

func countObjects(env *testenv.Env, cluster string) burstCounter {
	return func(ctx context.Context, b *burst) (int, error) {
		list := &corev1.ConfigMapList{}
		err := memberClient(env, cluster).List(ctx, list, client.InNamespace(b.namespace),
			client.MatchingLabels{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
		return len(list.Items), err
	}
}

// awaitCount waits until at least wantCount objects satisfy a condition.
func (b *burst) awaitCount(t testing.TB, description string, wantCount int, count burstCounter) {
	t.Helper()
	testenv.Eventually(t, description, func(ctx context.Context) error {
		n, err := count(ctx, b)
		if err == nil && n < wantCount {
			err = fmt.Errorf("%d of %d", n, wantCount)
		}
		return err
	})
}

// The test restarts the components in every propagation step of a burst, when some templates have
// passed the step and others have not.
func TestComponentRestartAtEveryPropagationStep(t *testing.T) {
	env := alone(t)
	b := newBurst(env, env.Namespace(t))
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "burst"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}, Placement: placementOn(member1, member2),
		},
	}
	env.Create(t, policy)
	for _, template := range b.templates {
		env.Create(t, template)
	}
	for i, step := range []struct {
		name  string
		count burstCounter
	}{
		{"bound", countBindings(env, func(*workv1alpha2.ResourceBinding) bool { return true })},
		{"scheduled", countBindings(env, func(b *workv1alpha2.ResourceBinding) bool { return len(b.Spec.Clusters) > 0 })},
		{"has a Work in the first cluster", countWorks(env, member1)},
		{"has a Work in the second cluster", countWorks(env, member2)},
		{"applied in the first member", countObjects(env, member1)},
		{"applied in the second member", countObjects(env, member2)},
		{"fully applied", countBindings(env, func(b *workv1alpha2.ResourceBinding) bool {
			return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "") == nil
		})},
	} {
		b.awaitCount(t, step.name, (i+1)*burstSize/8, step.count)
		restartComponents(t, env)
	}
	uids := b.awaitConverged(t, "blue")

	// Change all templates and restart the components while the change is propagated.
	for _, template := range b.templates {
		testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	}
	restartComponents(t, env)
	for key, uid := range b.awaitConverged(t, "green") {
		if uids[key] != uid {
			t.Errorf("%s was deleted and created again", key)
		}
	}

	// Deletion of one half of the templates.
	deletedTemplates := b.templates[:burstSize/2]
	b.templates = b.templates[burstSize/2:]
	for i, template := range deletedTemplates {
		deleteObject(t, env.Karmada, template)
		if i == len(deletedTemplates)/3 || i == len(deletedTemplates)-1 {
			restartComponents(t, env)
		}
	}
	b.awaitConverged(t, "green")
}

// awaitConverged waits until all templates of the burst, and no others, are in their members. It
// returns the UIDs of the member objects.
func (b *burst) awaitConverged(t testing.TB, color string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	testenv.Eventually(t, "the end state", func(ctx context.Context) error {
		want := len(b.templates)
		for description, count := range map[string]burstCounter{
			"bindings":           countBindings(b.env, func(*workv1alpha2.ResourceBinding) bool { return true }),
			"Works of member1":   countWorks(b.env, member1),
			"Works of member2":   countWorks(b.env, member2),
			"Works of member3":   expectNone(want, countWorks(b.env, member3)),
			"objects of member1": countObjects(b.env, member1),
			"objects of member2": countObjects(b.env, member2),
			"objects of member3": expectNone(want, countObjects(b.env, member3)),
		} {
			n, err := count(ctx, b)
			if err := errors.Join(err, checkEqual(description, want, n)); err != nil {
				return err
			}
		}
		for _, cluster := range []string{member1, member2} {
			for _, template := range b.templates {
				object := configMap(template.Namespace, template.Name)
				if err := memberClient(b.env, cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
					return err
				}
				if err := hasColor(color)(object); err != nil {
					return err
				}
				uids[cluster+"/"+object.Name] = string(object.UID)
			}
		}
		return nil
	})
	return uids
}

// expectNone returns a counter that equals want if the given counter is zero.
func expectNone(want int, count burstCounter) burstCounter {
	return func(ctx context.Context, b *burst) (int, error) {
		n, err := count(ctx, b)
		return want - n, err
	}
}
