package binding

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

func TestNewBindingCostsOneCreatePerCluster(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	_, requests := w.reconcile()
	if diff := cmp.Diff([]string{"create *v1alpha1.Work", "create *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, requests = w.reconcile(); len(requests) != 0 {
		t.Errorf("a reconcile without a difference sent %v", requests)
	}
}

func TestNullsOfAManifestAreWrittenOnce(t *testing.T) {
	token := newOverridePolicy("nulls", policyv1alpha1.PlaintextOverrider{
		Path: "/spec/note", Operator: policyv1alpha1.OverriderOpAdd, Value: policyv1alpha1.JSON{Raw: []byte(`{"empty": null}`)},
	}, "m1")
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	if err := w.store.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if _, requests := w.reconcile(); len(requests) != 1 {
		t.Errorf("requests for the override: %v", requests)
	}
	if _, requests := w.reconcile(); len(requests) != 0 {
		t.Errorf("a reconcile without a difference sent %v", requests)
	}
}

func TestReleasedBindingKeepsItsWorks(t *testing.T) {
	claim := policy.Claim{Namespace: "shop", Name: "spread", ID: "policy-1"}
	bound := bindingTo("m1")
	bound.Annotations = map[string]string{policyv1alpha1.TemplateStateAnnotation: "1"}
	claim.Apply(bound)
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bound)
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Annotations[policyv1alpha1.TemplateStateAnnotation] = w.templateState()
	})
	w.reconcile()
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { claim.Remove(b) })
	template := deployment()
	template.Labels["app"] = "changed"
	if err := w.store.Patch(t.Context(), template, client.MergeFrom(deployment())); err != nil {
		t.Fatal(err)
	}
	if _, requests := w.reconcile(); len(requests) != 0 {
		t.Errorf("requests for a template without a policy: %v", requests)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = bindingTo("m1", "m2").Spec.Clusters })
	if _, requests := w.reconcile(); len(requests) != 1 || requests[0] != "create *v1alpha1.Work" {
		t.Errorf("requests for another cluster: %v", requests)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		claim.Apply(b)
		b.Annotations[policyv1alpha1.TemplateStateAnnotation] = w.templateState()
	})
	if _, requests := w.reconcile(); len(requests) != 1 || requests[0] != "update *v1alpha1.Work" {
		t.Errorf("requests after the next claim: %v", requests)
	}
}

// TestRefusedTemplateIsNotDelivered changes the template while the binding keeps its earlier state, as it
// does if a quota refuses the change.
func TestRefusedTemplateIsNotDelivered(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		policy.Claim{Namespace: "shop", Name: "spread", ID: "policy-1"}.Apply(b)
		b.Annotations[policyv1alpha1.TemplateStateAnnotation] = w.templateState()
	})
	w.reconcile()
	w.updateTemplate(func(d *appsv1.Deployment) { d.Labels["app"] = "refused" })
	if _, requests := w.reconcile(); len(requests) != 0 {
		t.Errorf("requests for a state that the binding does not record: %v", requests)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = bindingTo("m1", "m2").Spec.Clusters })
	if _, requests := w.reconcile(); len(requests) != 1 || requests[0] != "create *v1alpha1.Work" {
		t.Errorf("requests for another cluster: %v", requests)
	}
	for _, each := range w.works() {
		if strings.Contains(string(each.Spec.Workload.Manifests[0].Raw), "refused") {
			t.Errorf("the refused state is in %s", each.Namespace)
		}
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Annotations[policyv1alpha1.TemplateStateAnnotation] = w.templateState()
	})
	if _, requests := w.reconcile(); len(requests) != 2 || requests[0] != "update *v1alpha1.Work" {
		t.Errorf("requests after the binding records the state: %v", requests)
	}
}

// TestRefusedTemplateIsNotDeliveredFirst changes the template before its first Work is written.
func TestRefusedTemplateIsNotDeliveredFirst(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		policy.Claim{Namespace: "shop", Name: "spread", ID: "policy-1"}.Apply(b)
		b.Annotations[policyv1alpha1.TemplateStateAnnotation] = w.templateState()
	})
	w.updateTemplate(func(d *appsv1.Deployment) { d.Labels["app"] = "refused" })
	if _, requests := w.reconcile(); len(requests) != 0 {
		t.Errorf("requests for a state that the binding does not record: %v", requests)
	}
}

func TestFailureOfOneClusterDoesNotStopOthers(t *testing.T) {
	w := newFixture(t, cluster("m2"), deployment(), bindingTo("m1", "m2"))
	bound := bindingTo("m1", "m2")
	if _, err := w.ensure(t.Context(), bound, nil); err == nil {
		t.Error("a missing cluster returns no error")
	}
	if diff := cmp.Diff([]string{"m2"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestWorksFollowTheSchedule(t *testing.T) {
	w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
	w.reconcile()
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Name = "m2" })
	_, requests := w.reconcile()
	if diff := cmp.Diff([]string{"delete *v1alpha1.Work", "create *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m2"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestPurgeModes(t *testing.T) {
	cases := map[string]struct {
		mode     policyv1alpha1.PurgeMode
		clusters []string
		waits    bool
	}{
		"gracefully":  {policyv1alpha1.PurgeModeGracefully, []string{"m1", "m2"}, false},
		"never":       {policyv1alpha1.PurgeModeNever, []string{"m1", "m2"}, false},
		"directly":    {policyv1alpha1.PurgeModeDirectly, nil, true},
		"unspecified": {"", []string{"m1", "m2"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
			w.reconcile()
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters[0].Name = "m2"
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: tc.mode}}
			})
			result, _ := w.reconcile()
			if waits := result.RequeueAfter == purgePollInterval; waits != tc.waits {
				t.Errorf("requeued after %v", result.RequeueAfter)
			}
			if diff := cmp.Diff(tc.clusters, w.clustersWithWorks()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeadClusterIsNotWaitedFor(t *testing.T) {
	dead := cluster("m1")
	dead.Annotations = map[string]string{clusterv1alpha1.DeclaredDeadAnnotation: clusterv1alpha1.DeclaredDeadValue}
	w := newFixture(t, dead, cluster("m2"), deployment(), bindingTo("m1"))
	w.reconcile()
	works := &workv1alpha1.WorkList{}
	if err := w.store.List(t.Context(), works, client.InNamespace("karmada-es-m1")); err != nil || len(works.Items) != 1 {
		t.Fatalf("%d Works, %v", len(works.Items), err)
	}
	// The Work keeps its finalizer, as it does if its cluster does not respond.
	works.Items[0].Finalizers = []string{workv1alpha1.ExecutionFinalizer}
	if err := w.store.Update(t.Context(), &works.Items[0]); err != nil {
		t.Fatal(err)
	}
	w.updateBinding(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters[0].Name = "m2"
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
	})
	w.reconcile()
	if diff := cmp.Diff([]string{"m2"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	old := &works.Items[0]
	if err := w.store.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || old.DeletionTimestamp == nil {
		t.Errorf("the old Work must stay, terminating, in case its cluster returns: %v", err)
	}
}

func TestDeletedBindingDeletesOnlyItsWorks(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	unrelated := &workv1alpha1.Work{}
	unrelated.Namespace, unrelated.Name = "karmada-es-m9", "web"
	unrelated.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-1"}
	unrelated.Annotations = map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: "other", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment",
	}
	if err := w.store.Create(t.Context(), unrelated); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Delete(t.Context(), bindingTo()); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if diff := cmp.Diff([]string{"m9"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("Works left after the deletion (-want +got):\n%s", diff)
	}
	err := w.store.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, &workv1alpha2.ResourceBinding{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the binding still exists: %v", err)
	}
}

func TestMissingTemplateWritesNothing(t *testing.T) {
	w := newFixture(t, cluster("m1"), bindingTo("m1"))
	if result, requests := w.reconcile(); len(requests) != 0 || result.RequeueAfter != 0 {
		t.Errorf("got %v, %v", result, requests)
	}
}

func TestWorkOfOtherBindingIsNotTakenOver(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	other := bindingTo("m1")
	other.Namespace, other.UID = "other", "binding-2"
	other.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "id-2"
	if err := w.store.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	w.requests = nil
	result, err := w.ensure(t.Context(), other, nil)
	if err != nil || result.RequeueAfter != blockedRetryDelay {
		t.Errorf("got %v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"patch metadata of ResourceBinding"}, w.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestOrphanIsKeptWhileBindingIsStale(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.reconcile()
	old := bindingTo()
	old.Generation = 7
	works, err := w.worksOf(t.Context(), old)
	if err != nil || len(works) != 1 {
		t.Fatalf("got %v, %v", works, err)
	}
	if result, err := w.ensure(t.Context(), old, works); err != nil || result != loop.StaleResult() {
		t.Errorf("got %v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestOverrideThatRenamesReplacesWork(t *testing.T) {
	w := newFixture(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.options.Allowed.AllowIdentityChange = true
	w.reconcile()
	rename := &policyv1alpha1.ClusterOverridePolicy{}
	rename.Name = "rename"
	rename.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/metadata/name", Operator: policyv1alpha1.OverriderOpReplace}},
	}}}
	rename.Spec.OverrideRules[0].Overriders.Plaintext[0].Value.Raw = []byte(`"shop-window"`)
	if err := w.store.Create(t.Context(), rename); err != nil {
		t.Fatal(err)
	}
	_, requests := w.reconcile()
	if diff := cmp.Diff([]string{"create *v1alpha1.Work", "delete *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if all := w.workIDs(); len(all) != 2 {
		t.Errorf("the old and the new Work have the ids %v", all)
	}
}

func TestReconcileClusterResourceBinding(t *testing.T) {
	bound := &workv1alpha2.ClusterResourceBinding{}
	bound.Name = "mall-namespace"
	bound.Finalizers = []string{workv1alpha2.ClusterResourceBindingControllerFinalizer}
	bound.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id-1"}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "mall"}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	w := newFixture(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall"}}, cluster("m1"), bound)
	w.namespaced = false
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "mall-namespace"}}
	if _, err := w.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clustersWithWorks()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if err := w.store.Delete(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if left := w.clustersWithWorks(); len(left) != 0 {
		t.Errorf("Works are left in %v", left)
	}
}

func TestWorkOfPropagatedNamespaceIsUnbound(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "mall", UID: "mall-1", Controller: new(true)}
	existing := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", UID: "mall-1"}}
	recreated := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", UID: "mall-2"}}
	terminating := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "mall", UID: "mall-1", Finalizers: []string{"kubernetes"}, DeletionTimestamp: new(metav1.Now()),
	}}
	cases := map[string]struct {
		namespace []client.Object
		owners    []metav1.OwnerReference
		kept      bool
	}{
		"an existing Namespace":                 {[]client.Object{existing}, []metav1.OwnerReference{owner}, true},
		"a terminating Namespace":               {[]client.Object{terminating}, []metav1.OwnerReference{owner}, false},
		"a deleted Namespace":                   {nil, []metav1.OwnerReference{owner}, false},
		"another Namespace of that name":        {[]client.Object{recreated}, []metav1.OwnerReference{owner}, false},
		"a Namespace propagated by policy only": {[]client.Object{existing}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, append(tc.namespace, cluster("m1"), deployment(), bindingTo("m1"))...)
			w.reconcile()
			w.setOwners(tc.owners)
			w.updateBinding(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
			w.reconcile()
			left := w.works()
			if !tc.kept {
				if len(w.clustersWithWorks()) != 0 {
					t.Errorf("remaining Works: %v", left)
				}
				return
			}
			if len(left) != 1 || work.HasBinding(&left[0]) || left[0].DeletionTimestamp != nil {
				t.Errorf("remaining Works: %v", left)
			}
			if _, requests := w.reconcile(); len(requests) != 0 {
				t.Errorf("the next reconcile sent %v", requests)
			}
		})
	}
}

func TestExpectsWork(t *testing.T) {
	w := newFixture(t, bindingTo("m1"))
	in := func(cluster string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(cluster), Name: "web"}}
	}
	key := client.ObjectKeyFromObject(bindingTo())
	if !w.expectsWork(t.Context(), key, in("m1")) {
		t.Error("the Work of a target is not expected")
	}
	if w.expectsWork(t.Context(), key, in("m2")) {
		t.Error("the Work of a cluster that is not a target is expected")
	}
	if w.expectsWork(t.Context(), types.NamespacedName{Namespace: "shop", Name: "gone"}, in("m1")) {
		t.Error("the Work of a deleted binding is expected")
	}
}
