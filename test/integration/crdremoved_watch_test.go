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
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

// listRecorder records when each server received the last list or watch request for all objects
// of a resource.
type listRecorder struct {
	resource string

	mu           sync.Mutex
	lastRequests map[string]time.Duration
}

func (l *listRecorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		if strings.HasSuffix(request.URL.Path, "/"+l.resource) && request.Method == http.MethodGet {
			l.mu.Lock()
			l.lastRequests[request.URL.Host] = clock.now()
			l.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// maxWatchRetryDelay is the longest time between two tries of a watch that fails.
const maxWatchRetryDelay = 32 * time.Second

// checkIdle returns an error if the server received a request within maxWatchRetryDelay.
func (l *listRecorder) checkIdle(host string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lastRequest, found := l.lastRequests[strings.TrimPrefix(host, "https://")]
	if !found {
		return fmt.Errorf("%s never received a request for %s", host, l.resource)
	}
	if since := clock.since(lastRequest); since < maxWatchRetryDelay {
		return fmt.Errorf("%s received a request for %s %s ago", host, l.resource, since)
	}
	return nil
}

// Not shared: the test observes all requests of the components.
func TestWatchesEndWhenTheirKindIsNoLongerServed(t *testing.T) {
	env := alone(t)
	seen := &listRecorder{resource: "cogs", lastRequests: map[string]time.Duration{}}
	env.Wrap = seen.wrap
	t.Cleanup(func() { env.Wrap = nil })
	withSettings(t, env, "", func(*controllermanager.Options) {})
	namespace := env.Namespace(t)
	awaitNamespace(t, env, member1, namespace)
	kind := newCRD("cogs.example.org", "Cog", "cogs")
	cleanUp(t, env, kind.DeepCopy())
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(memberClient(env, member1).Delete(context.WithoutCancel(t.Context()), kind.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
	defineIn := func(clusterClients ...client.Client) {
		t.Helper()
		for _, clusterClient := range clusterClients {
			if err := clusterClient.Create(t.Context(), kind.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
	}
	defineIn(env.Karmada, memberClient(env, member1))
	env.Create(t, &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cogs"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "cogs.example.org/v1", Kind: "Cog"}}, Placement: placementOn(member1),
		},
	})
	template := newCog(namespace, "first")
	createCog(t, env, template)
	memberWork, rb := workOf(t, member1, template), bindingOf(t, template)
	awaitStatusReflection(t, env, memberWork, template)
	created := await(t, env.Karmada, memberWork, isApplied)
	owner := await(t, env.Karmada, rb, exists)

	// The CRD is deleted in the member only: the member deletes its objects of the kind, and
	// the control plane keeps everything.
	deleteObject(t, memberClient(env, member1), kind.DeepCopy())
	awaitGone(t, memberClient(env, member1), kind.DeepCopy())
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		if err := checkCondition(w.Status.Conditions, workv1alpha1.WorkApplied, metav1.ConditionFalse, "AppliedFailed", ""); err != nil {
			return err
		}
		for _, c := range w.Status.Conditions {
			if c.Type == workv1alpha1.WorkApplied && !strings.Contains(c.Message, "no matches for kind") {
				return fmt.Errorf("the watch is not stopped: %s", c.Message)
			}
		}
		return checkEqual("uid", created.UID, w.UID)
	})
	await(t, env.Karmada, template.DeepCopy(), exists)
	defineIn(memberClient(env, member1))
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		return errors.Join(isApplied(w), checkEqual("uid", created.UID, w.UID))
	})
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error { return checkEqual("uid", owner.UID, b.UID) })
	awaitStatusReflection(t, env, memberWork, template)

	// The CRD is deleted on both sides: the components send no more requests for the kind.
	deleteObject(t, env.Karmada, template.DeepCopy())
	awaitGone(t, env.Karmada, memberWork)
	for _, clusterClient := range []client.Client{env.Karmada, memberClient(env, member1)} {
		deleteObject(t, clusterClient, kind.DeepCopy())
		awaitGone(t, clusterClient, kind.DeepCopy())
	}
	testenv.Eventually(t, "the end of the watches of a kind that is not served", func(context.Context) error {
		return errors.Join(seen.checkIdle(env.Config.Host), seen.checkIdle(env.Members[member1].Config.Host))
	})
	defineIn(env.Karmada, memberClient(env, member1))
	second := newCog(namespace, "second")
	createCog(t, env, second)
	awaitStatusReflection(t, env, workOf(t, member1, second), second)
	await(t, env.Karmada, workOf(t, member1, second), isApplied)
}

func newCog(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cogs.example.org/v1", "kind": "Cog",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"teeth": int64(12)},
	}}
}

// createCog creates an object of a kind whose CRD was just created.
func createCog(t *testing.T, env *testenv.Env, template *unstructured.Unstructured) {
	t.Helper()
	testenv.Eventually(t, "the control plane serves the new kind", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(env.Karmada.Create(ctx, template.DeepCopy()))
	})
}

// awaitStatusReflection changes the status of the member object and waits until its Work has
// it.
func awaitStatusReflection(t *testing.T, env *testenv.Env, memberWork *workv1alpha1.Work, template *unstructured.Unstructured) {
	t.Helper()
	awaitInMember(t, env, member1, template.DeepCopy(), exists)
	speed := clock.now().String()
	testenv.Update(t, memberClient(env, member1), template.DeepCopy(), func(c *unstructured.Unstructured) { c.Object["status"] = map[string]any{"turns": speed} })
	await(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) error {
		if len(w.Status.ManifestStatuses) != 1 || w.Status.ManifestStatuses[0].Status == nil {
			return fmt.Errorf("statuses %+v", w.Status.ManifestStatuses)
		}
		return checkEqual("status", true, strings.Contains(string(w.Status.ManifestStatuses[0].Status.Raw), speed))
	})
}
