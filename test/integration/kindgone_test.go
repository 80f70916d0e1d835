package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/testenv"
)

// lists notes when each server was last asked to list or watch all objects of one
// resource.
type lists struct {
	resource string

	mu   sync.Mutex
	last map[string]time.Duration
}

func (l *lists) wrap(next http.RoundTripper) http.RoundTripper {
	return tripper(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/"+l.resource) && request.Method == http.MethodGet {
			l.mu.Lock()
			l.last[request.URL.Host] = clock.now()
			l.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// longestPause is the longest time between two tries of a watch that fails.
const longestPause = 32 * time.Second

// quiet reports an error while a server was asked lately.
func (l *lists) quiet(host string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, asked := l.last[strings.TrimPrefix(host, "https://")]
	if !asked {
		return fmt.Errorf("%s was never asked for %s", host, l.resource)
	}
	if since := clock.since(last); since < longestPause {
		return fmt.Errorf("%s was asked for %s %s ago", host, l.resource, since)
	}
	return nil
}

// Not parallel: all requests of the components are looked at.
func TestWatchesLastAsLongAsTheirKindIsServed(t *testing.T) {
	env := alone(t)
	seen := &lists{resource: "cogs", last: map[string]time.Duration{}}
	env.Wrap = seen.wrap
	t.Cleanup(func() { env.Wrap = nil })
	withSettings(t, env, "", func(*programs.Settings) {})
	namespace := env.Namespace(t)
	namespaceIn(t, env, member1, namespace)
	kind := definition("cogs.example.org", "Cog", "cogs")
	cleanUp(t, env, kind.DeepCopy())
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(member(env, member1).Delete(context.WithoutCancel(t.Context()), kind.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
	defineIn := func(sides ...client.Client) {
		t.Helper()
		for _, side := range sides {
			if err := side.Create(t.Context(), kind.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
	}
	defineIn(env.Karmada, member(env, member1))
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cogs"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "cogs.example.org/v1", Kind: "Cog"}}, Placement: on(member1),
		},
	})
	template := cog(namespace, "first")
	storeCog(t, env, template)
	of, bound := workOf(t, member1, template), bindingOf(t, template)
	turns(t, env, of, template)
	made := await(t, env.Karmada, of, applied)
	owner := await(t, env.Karmada, bound, exists)

	// The member alone: its objects go with the definition, and nothing else does.
	deleteObject(t, member(env, member1), kind.DeepCopy())
	awaitGone(t, member(env, member1), kind.DeepCopy())
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		if err := condition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", ""); err != nil {
			return err
		}
		for _, c := range w.Status.Conditions {
			if c.Type == workv1alpha1.WorkApplied && !strings.Contains(c.Message, "no matches for kind") {
				return fmt.Errorf("the watch goes on: %s", c.Message)
			}
		}
		return same("uid", made.UID, w.UID)
	})
	await(t, env.Karmada, template.DeepCopy(), exists)
	defineIn(member(env, member1))
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error { return errors.Join(applied(w), same("uid", made.UID, w.UID)) })
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error { return same("uid", owner.UID, b.UID) })
	turns(t, env, of, template)

	// Both sides: no side is asked for the kind any longer.
	deleteObject(t, env.Karmada, template.DeepCopy())
	awaitGone(t, env.Karmada, of)
	for _, side := range []client.Client{env.Karmada, member(env, member1)} {
		deleteObject(t, side, kind.DeepCopy())
		awaitGone(t, side, kind.DeepCopy())
	}
	testenv.Eventually(t, "the end of the watches of a kind that is not served", func(context.Context) error {
		return errors.Join(seen.quiet(env.Config.Host), seen.quiet(env.Members[member1].Config.Host))
	})
	defineIn(env.Karmada, member(env, member1))
	second := cog(namespace, "second")
	storeCog(t, env, second)
	turns(t, env, workOf(t, member1, second), second)
	await(t, env.Karmada, workOf(t, member1, second), applied)
}

func cog(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cogs.example.org/v1", "kind": "Cog",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"teeth": int64(12)},
	}}
}

// storeCog stores an object of a kind that was just defined.
func storeCog(t *testing.T, env *testenv.Env, template *unstructured.Unstructured) {
	t.Helper()
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
}

// turns gives the member's object another status and waits until its Work has it.
func turns(t *testing.T, env *testenv.Env, of *workv1alpha1.Work, template *unstructured.Unstructured) {
	t.Helper()
	inMember(t, env, member1, template.DeepCopy(), exists)
	speed := clock.now().String()
	testenv.Update(t, member(env, member1), template.DeepCopy(), func(c *unstructured.Unstructured) { c.Object["status"] = map[string]any{"turns": speed} })
	await(t, env.Karmada, of, func(w *workv1alpha1.Work) error {
		if len(w.Status.ManifestStatuses) != 1 || w.Status.ManifestStatuses[0].Status == nil {
			return fmt.Errorf("statuses %+v", w.Status.ManifestStatuses)
		}
		return same("status", true, strings.Contains(string(w.Status.ManifestStatuses[0].Status.Raw), speed))
	})
}
