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

// burst is a number of ConfigMaps that one policy sends to two members.
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

// count is how many objects of a list in the burst's namespace, or of it, satisfy
// a condition.
type count func(ctx context.Context, b *burst) (int, error)

func countBindings(env *testenv.Env, reached func(*workv1alpha2.ResourceBinding) bool) count {
	return func(ctx context.Context, b *burst) (int, error) {
		list := &workv1alpha2.ResourceBindingList{}
		err := env.Karmada.List(ctx, list, client.InNamespace(b.namespace))
		n := 0
		for i := range list.Items {
			if reached(&list.Items[i]) {
				n++
			}
		}
		return n, err
	}
}

func countWorks(env *testenv.Env, cluster string) count {
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

func countObjects(env *testenv.Env, cluster string) count {
	return func(ctx context.Context, b *burst) (int, error) {
		list := &corev1.ConfigMapList{}
		err := member(env, cluster).List(ctx, list, client.InNamespace(b.namespace),
			client.MatchingLabels{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
		return len(list.Items), err
	}
}

// reaches waits until a number of objects have come so far.
func (b *burst) reaches(t testing.TB, what string, number int, of count) {
	t.Helper()
	testenv.Eventually(t, what, func(ctx context.Context) error {
		n, err := of(ctx, b)
		if err == nil && n < number {
			err = fmt.Errorf("%d of %d", n, number)
		}
		return err
	})
}

// The components are ended at each step that templates take on their way, in the
// middle of a burst, so that some are before the step and some behind it.
func TestComponentsThatEndAtAnyStepLoseNothingAndRepeatNothing(t *testing.T) {
	env := alone(t)
	b := newBurst(env, env.Namespace(t))
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "burst"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}, Placement: on(member1, member2),
		},
	}
	env.Create(t, policy)
	for _, template := range b.templates {
		env.Create(t, template)
	}
	for i, step := range []struct {
		name string
		of   count
	}{
		{"bound", countBindings(env, func(*workv1alpha2.ResourceBinding) bool { return true })},
		{"scheduled", countBindings(env, func(b *workv1alpha2.ResourceBinding) bool { return len(b.Spec.Clusters) > 0 })},
		{"has a Work in the first cluster", countWorks(env, member1)},
		{"has a Work in the second cluster", countWorks(env, member2)},
		{"is in the first member", countObjects(env, member1)},
		{"is in the second member", countObjects(env, member2)},
		{"is fully applied", countBindings(env, func(b *workv1alpha2.ResourceBinding) bool {
			return condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "") == nil
		})},
	} {
		b.reaches(t, step.name, (i+1)*burstSize/8, step.of)
		restart(t, env)
	}
	uids := b.converged(t, "blue")

	// A change, with an end at each step again.
	for _, template := range b.templates {
		testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	}
	restart(t, env)
	for key, uid := range b.converged(t, "green") {
		if uids[key] != uid {
			t.Errorf("%s was deleted and created again", key)
		}
	}

	// Withdrawal of one half.
	gone := b.templates[:burstSize/2]
	b.templates = b.templates[burstSize/2:]
	for i, template := range gone {
		deleteObject(t, env.Karmada, template)
		if i == len(gone)/3 || i == len(gone)-1 {
			restart(t, env)
		}
	}
	b.converged(t, "green")
}

// converged waits until exactly the templates of the burst are where they have to
// be, once each, and returns the UIDs of the objects in the members.
func (b *burst) converged(t testing.TB, color string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	testenv.Eventually(t, "the end state", func(ctx context.Context) error {
		want := len(b.templates)
		for what, of := range map[string]count{
			"bindings":           countBindings(b.env, func(*workv1alpha2.ResourceBinding) bool { return true }),
			"Works of member1":   countWorks(b.env, member1),
			"Works of member2":   countWorks(b.env, member2),
			"Works of member3":   minus(want, countWorks(b.env, member3)),
			"objects of member1": countObjects(b.env, member1),
			"objects of member2": countObjects(b.env, member2),
			"objects of member3": minus(want, countObjects(b.env, member3)),
		} {
			n, err := of(ctx, b)
			if err := errors.Join(err, same(what, want, n)); err != nil {
				return err
			}
		}
		for _, cluster := range []string{member1, member2} {
			for _, template := range b.templates {
				object := configMap(template.Namespace, template.Name)
				if err := member(b.env, cluster).Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
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

// minus counts what must not be: it is the whole number as long as there is none.
func minus(whole int, of count) count {
	return func(ctx context.Context, b *burst) (int, error) {
		n, err := of(ctx, b)
		return whole - n, err
	}
}
