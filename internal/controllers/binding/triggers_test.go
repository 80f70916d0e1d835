package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/loop"
)

func overridePolicy(namespace string, selectors ...policyv1alpha1.ResourceSelector) override.Object {
	spec := policyv1alpha1.OverrideSpec{ResourceSelectors: selectors}
	if namespace == "" {
		return &policyv1alpha1.ClusterOverridePolicy{Spec: spec}
	}
	return &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: spec}
}

func TestSearchesOfOverridePolicy(t *testing.T) {
	selector := func(change func(*policyv1alpha1.ResourceSelector)) policyv1alpha1.ResourceSelector {
		s := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
		change(&s)
		return s
	}
	labelled := func(value string) policyv1alpha1.ResourceSelector {
		return selector(func(s *policyv1alpha1.ResourceSelector) {
			s.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}
		})
	}
	kind := selector(func(*policyv1alpha1.ResourceSelector) {})
	cases := map[string]struct {
		policy override.Object
		want   bool
	}{
		"without selectors, in its namespace":           {overridePolicy("shop"), true},
		"without selectors, in another namespace":       {overridePolicy("bank"), false},
		"a cluster policy without selectors":            {overridePolicy(""), true},
		"by kind":                                       {overridePolicy("shop", kind), true},
		"by kind in another namespace":                  {overridePolicy("bank", kind), false},
		"by kind everywhere":                            {overridePolicy("", kind), true},
		"by another version of the kind":                {overridePolicy("", selector(func(s *policyv1alpha1.ResourceSelector) { s.APIVersion = "apps/v2" })), false},
		"by name":                                       {overridePolicy("shop", selector(func(s *policyv1alpha1.ResourceSelector) { s.Name = "web" })), true},
		"by another name":                               {overridePolicy("shop", selector(func(s *policyv1alpha1.ResourceSelector) { s.Name = "db" })), false},
		"by namespace":                                  {overridePolicy("", selector(func(s *policyv1alpha1.ResourceSelector) { s.Namespace = "shop" })), true},
		"by another namespace":                          {overridePolicy("", selector(func(s *policyv1alpha1.ResourceSelector) { s.Namespace = "bank" })), false},
		"by a namespace other than the policy's":        {overridePolicy("shop", selector(func(s *policyv1alpha1.ResourceSelector) { s.Namespace = "bank" })), false},
		"by label":                                      {overridePolicy("shop", labelled("web")), true},
		"by another label":                              {overridePolicy("shop", labelled("db")), false},
		"by the second of two selectors":                {overridePolicy("shop", labelled("db"), kind), true},
		"a name has precedence over the label selector": {overridePolicy("shop", selector(func(s *policyv1alpha1.ResourceSelector) { s.Name, s.LabelSelector = "web", &metav1.LabelSelector{} })), true},
	}
	bound := bindingTo()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := false
			for _, s := range searchesOf(tc.policy) {
				if s.key != "" && !slices.Contains(loop.BindingsByTemplate.Keys(bound), s.key) {
					continue
				}
				got = got || s.selects(bound.Spec.Resource, func(workv1alpha2.ObjectReference) *unstructured.Unstructured {
					return labelledDeployment(map[string]string{"app": "web"})
				})
			}
			if got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTemplateIsReadOnlyToCompareLabels(t *testing.T) {
	read := func(workv1alpha2.ObjectReference) *unstructured.Unstructured {
		t.Error("the template was read")
		return nil
	}
	for _, s := range searchesOf(overridePolicy("shop",
		policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"},
		policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", LabelSelector: &metav1.LabelSelector{}},
	)) {
		s.selects(bindingTo().Spec.Resource, read)
	}
}

func TestUnreadableTemplateCountsAsSelected(t *testing.T) {
	s := bindingSearch{selector: &policyv1alpha1.ResourceSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	if !s.selects(bindingTo().Spec.Resource, func(workv1alpha2.ObjectReference) *unstructured.Unstructured { return nil }) {
		t.Error("the binding would not be queued")
	}
}

func TestRequestsForOldAndNewSelectors(t *testing.T) {
	w := newFixture(t, bindingTo("m1"), deployment())
	by := func(name string) client.Object {
		return overridePolicy("shop", policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: name})
	}
	if got := w.requestsForPolicies(t.Context(), by("web"), by("db")); len(got) != 1 {
		t.Errorf("the old selector: got %v", got)
	}
	if got := w.requestsForPolicies(t.Context(), by("db"), by("web")); len(got) != 1 {
		t.Errorf("the new selector: got %v", got)
	}
	if got := w.requestsForPolicies(t.Context(), by("db")); len(got) != 0 {
		t.Errorf("another name: got %v", got)
	}
}

// noTemplateReads is an API server that must not be read.
type noTemplateReads struct {
	client.Reader
	t *testing.T
}

func (n noTemplateReads) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	n.t.Errorf("%s was read from the API server", key)
	return nil
}

func TestPolicyEventReadsOnlyCaches(t *testing.T) {
	w := newFixture(t, bindingTo("m1"), deployment())
	w.templateReader = template.NewReader(nil, noTemplateReads{t: t})
	byLabel := overridePolicy("shop", policyv1alpha1.ResourceSelector{
		APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
	})
	if got := w.requestsForPolicies(t.Context(), byLabel); len(got) != 1 {
		t.Errorf("got %v, want the binding, because its template is not cached", got)
	}
}

func TestRelevantBindingUpdates(t *testing.T) {
	cases := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		want   bool
	}{
		"another generation counts": {func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, true},
		"the deletion counts":       {func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{} }, true},
		"a permanent ID counts":     {func(b *workv1alpha2.ResourceBinding) { b.Labels = map[string]string{} }, true},
		"other labels do not":       {func(b *workv1alpha2.ResourceBinding) { b.Labels["a"] = "b" }, false},
		"annotations do not":        {func(b *workv1alpha2.ResourceBinding) { b.Annotations = map[string]string{"a": "b"} }, false},
		"the suspension of a dependent counts": {func(b *workv1alpha2.ResourceBinding) {
			b.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: `{"shop/web-deployment":["*"]}`}
		}, true},
		"the status does not": {func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration = 3 }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := bindingTo()
			tc.change(after)
			if got := isRelevantUpdate(bindingTo(), after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestHasChangedAttributes(t *testing.T) {
	cases := map[string]struct {
		change func(*clusterv1alpha1.Cluster)
		want   bool
	}{
		"labels":   {func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"a": "b"} }, true},
		"provider": {func(c *clusterv1alpha1.Cluster) { c.Spec.Provider = "p" }, true},
		"region":   {func(c *clusterv1alpha1.Cluster) { c.Spec.Region = "r" }, true},
		"zones":    {func(c *clusterv1alpha1.Cluster) { c.Spec.Zones = []string{"z"} }, true},
		"endpoint": {func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://m1" }, false},
		"status":   {func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := cluster("m1")
			tc.change(after)
			if got := hasChangedAttributes(cluster("m1"), after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBindingOfWork(t *testing.T) {
	of := func(annotations map[string]string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	if key, ok := binding.ReferencedBinding(of(binding.ReferenceAnnotations(bindingTo())), true); !ok || key != (types.NamespacedName{Namespace: "shop", Name: "web-deployment"}) {
		t.Errorf("a ResourceBinding: got %v, %v", key, ok)
	}
	wide := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "role-clusterrole"}}
	if key, ok := binding.ReferencedBinding(of(binding.ReferenceAnnotations(wide)), false); !ok || key != (types.NamespacedName{Name: "role-clusterrole"}) {
		t.Errorf("a ClusterResourceBinding: got %v, %v", key, ok)
	}
	for _, namespaced := range []bool{true, false} {
		if _, ok := binding.ReferencedBinding(of(nil), namespaced); ok {
			t.Error("a Work without annotations has a binding")
		}
	}
}

func TestIsTemplateStale(t *testing.T) {
	cases := map[string]struct {
		uid           types.UID
		seen, current string
		want          bool
	}{
		"older":                             {"web-1", "99", "100", true},
		"the same":                          {"web-1", "100", "100", false},
		"newer":                             {"web-1", "1000", "999", false},
		"older, but of another object":      {"web-2", "99", "100", false},
		"older, but the binding has no UID": {"", "99", "100", false},
		"the binding has no version":        {"web-1", "99", "", false},
		"versions that are not numbers":     {"web-1", "a", "b", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := labelledDeployment(nil)
			object.SetUID("web-1")
			object.SetResourceVersion(tc.seen)
			if got := isTemplateStale(object, workv1alpha2.ObjectReference{UID: tc.uid, ResourceVersion: tc.current}); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestIndexFields(t *testing.T) {
	withRequiredBy := bindingTo("m1")
	withRequiredBy.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "m2"}}}}
	if diff := cmp.Diff([]string{"m1", "m2"}, loop.BindingsByTarget.Keys(withRequiredBy)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	duplicate := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}
	if diff := cmp.Diff([]string{"|v1|ConfigMap"}, selectedKinds(overridePolicy("", duplicate, duplicate))); diff != "" {
		t.Errorf("selected kinds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{anyKind}, selectedKinds(overridePolicy(""))); diff != "" {
		t.Errorf("a policy without selectors (-want +got):\n%s", diff)
	}
	byName := overridePolicy("")
	byName.OverrideSpec().TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}
	byLabel := overridePolicy("")
	byLabel.OverrideSpec().OverrideRules = []policyv1alpha1.RuleWithCluster{{}, {TargetCluster: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{}}}}
	if len(attributeKeys(byName.(client.Object))) != 0 || len(attributeKeys(byLabel.(client.Object))) != 1 {
		t.Error("policies that select clusters by attributes are not distinguished")
	}
}

func TestClassifyFailures(t *testing.T) {
	works := schema.GroupResource{Resource: "works"}
	overrideError := fmt.Errorf("cluster %q: %w", "m1", &override.RuleError{Err: errors.New("missing field")})
	conflict := fmt.Errorf("patching: %w", apierrors.NewConflict(works, "w", errors.New("old")))
	exists := fmt.Errorf("creating: %w", apierrors.NewAlreadyExists(works, "w"))
	cases := map[string]struct {
		failures                          []error
		reported, overrideErrors, retried int // all other reported failures are no override errors
		isStale, isBlocked                bool
	}{
		"none":                                    {},
		"a conflict is not reported":              {[]error{conflict}, 0, 0, 0, true, false},
		"a stale cache is not reported":           {[]error{exists, loop.ErrStale}, 0, 0, 0, true, false},
		"an override error waits for a user":      {[]error{overrideError}, 1, 1, 0, false, true},
		"an obstacle is retried later":            {[]error{&blockedError{"being deleted"}}, 1, 0, 0, false, true},
		"a rule that did not run is only retried": {[]error{&clusterError{"m1", &interpreter.BusyError{Text: "8 calls run"}}}, 0, 0, 1, false, false},
		"other errors are retried":                {[]error{errors.New("timeout")}, 1, 0, 1, false, false},
		"a conflict and an override error":        {[]error{conflict, overrideError}, 1, 1, 0, true, true},
		"a failure of each class":                 {[]error{overrideError, conflict, errors.New("timeout")}, 2, 1, 1, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := classifyFailures(tc.failures)
			if len(v.reported) != tc.reported || len(v.overrideErrors) != tc.overrideErrors || len(v.otherErrors) != tc.reported-tc.overrideErrors ||
				len(v.retried) != tc.retried || v.isStale != tc.isStale || v.isBlocked != tc.isBlocked {
				t.Errorf("got %+v", v)
			}
		})
	}
}

func TestReconcileWaitsUntilTheCacheShowsItsWrites(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	key := types.NamespacedName{Namespace: "shop", Name: "web-deployment"}
	w.writes.Record(key, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "unseen", ResourceVersion: "7"}})
	if result, writes := w.reconcile(); len(writes) > 0 || result != loop.StaleResult() {
		t.Errorf("before the cache shows the write: %v, result %v, want a retry with backoff", writes, result)
	}
	w.writes.Forget(key)
	if _, writes := w.reconcile(); len(writes) != 1 {
		t.Errorf("afterwards: %v", writes)
	}
}

func TestDeletedWorkEndsPendingWrite(t *testing.T) {
	tests := map[string]struct {
		deleted string
		want    bool
	}{
		"the written Work was deleted before the cache showed it": {"8", true},
		"an earlier Work of the same name was deleted":            {"6", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			key := types.NamespacedName{Namespace: "shop", Name: "web-deployment"}
			of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-es-m1", Name: "web", ResourceVersion: "7", Annotations: map[string]string{
					workv1alpha2.ResourceBindingNamespaceAnnotation: key.Namespace, workv1alpha2.ResourceBindingNameAnnotation: key.Name,
				},
			}}
			w.writes.Record(key, of)
			of = of.DeepCopy()
			of.ResourceVersion = tc.deleted
			q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer q.ShutDown()
			w.newWorkHandler().Delete(t.Context(), event.DeleteEvent{Object: of}, q)
			if q.Len() != 1 {
				t.Errorf("%d bindings are queued, want 1", q.Len())
			}
			if got, err := w.writes.AreVisible(t.Context(), key, w.store, w.store); err != nil || got != tc.want {
				t.Errorf("cache is current: %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}
