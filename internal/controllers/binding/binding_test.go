package binding

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
)

func TestANewlyScheduledBindingCostsOneCreateForEachCluster(t *testing.T) {
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1", "m2"))
	_, requests := w.pass()
	if diff := cmp.Diff([]string{"create *v1alpha1.Work", "create *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if _, requests = w.pass(); len(requests) != 0 {
		t.Errorf("a pass that finds everything in order asked for %v", requests)
	}
}

func TestNullsOfAManifestAreWrittenOnce(t *testing.T) {
	token := overriding("nulls", policyv1alpha1.PlaintextOverrider{
		Path: "/spec/note", Operator: policyv1alpha1.OverriderOpAdd, Value: policyv1alpha1.JSON{Raw: []byte(`{"empty": null}`)},
	}, "m1")
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	if err := w.store.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if _, requests := w.pass(); len(requests) != 1 {
		t.Errorf("the override was written by %v", requests)
	}
	if _, requests := w.pass(); len(requests) != 0 {
		t.Errorf("a pass that finds everything in order asked for %v", requests)
	}
}

func TestWhatWasMadeOfABindingStaysAsItIsWhenItsPolicyLetsGo(t *testing.T) {
	claim := policy.Claim{Namespace: "shop", Name: "spread", ID: "policy-1"}
	bound := bindingTo("m1")
	bound.Annotations = map[string]string{policy.TemplateStateAnnotation: "1"}
	claim.Apply(bound)
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bound)
	w.pass()
	w.change(func(b *workv1alpha2.ResourceBinding) { claim.Remove(b) })
	template := deployment()
	template.Labels["app"] = "changed"
	if err := w.store.Patch(t.Context(), template, client.MergeFrom(deployment())); err != nil {
		t.Fatal(err)
	}
	if _, requests := w.pass(); len(requests) != 0 {
		t.Errorf("a template that follows no policy was sent on by %v", requests)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = bindingTo("m1", "m2").Spec.Clusters })
	if _, requests := w.pass(); len(requests) != 1 || requests[0] != "create *v1alpha1.Work" {
		t.Errorf("another cluster of the binding led to %v", requests)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) { claim.Apply(b) })
	if _, requests := w.pass(); len(requests) != 1 || requests[0] != "update *v1alpha1.Work" {
		t.Errorf("the next claim led to %v", requests)
	}
}

func TestTheFailureOfOneClusterDoesNotStopTheOthers(t *testing.T) {
	w := newWorld(t, cluster("m2"), deployment(), bindingTo("m1", "m2"))
	bound := bindingTo("m1", "m2")
	if _, err := w.ensure(t.Context(), bound, nil); err == nil {
		t.Error("a missing cluster is no error")
	}
	if diff := cmp.Diff([]string{"m2"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestWorksFollowTheSchedule(t *testing.T) {
	w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
	w.pass()
	w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Name = "m2" })
	_, requests := w.pass()
	if diff := cmp.Diff([]string{"delete *v1alpha1.Work", "create *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m2"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestAGracefullyEvictedClusterKeepsItsWorkAndADirectlyPurgedOneHoldsUpTheOthers(t *testing.T) {
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
			w := newWorld(t, cluster("m1"), cluster("m2"), deployment(), bindingTo("m1"))
			w.pass()
			w.change(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters[0].Name = "m2"
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: tc.mode}}
			})
			result, _ := w.pass()
			if waits := result.RequeueAfter == purgePoll; waits != tc.waits {
				t.Errorf("requeued after %v", result.RequeueAfter)
			}
			if diff := cmp.Diff(tc.clusters, w.clusters()); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClusterThatIsDeclaredDeadHoldsUpNobody(t *testing.T) {
	dead := cluster("m1")
	dead.Annotations = map[string]string{clusterv1alpha1.DeclaredDeadAnnotation: clusterv1alpha1.DeclaredDeadValue}
	w := newWorld(t, dead, cluster("m2"), deployment(), bindingTo("m1"))
	w.pass()
	works := &workv1alpha1.WorkList{}
	if err := w.store.List(t.Context(), works, client.InNamespace("karmada-es-m1")); err != nil || len(works.Items) != 1 {
		t.Fatalf("%d Works, %v", len(works.Items), err)
	}
	// A Work in a cluster that does not answer does not go.
	works.Items[0].Finalizers = []string{workv1alpha1.ExecutionFinalizer}
	if err := w.store.Update(t.Context(), &works.Items[0]); err != nil {
		t.Fatal(err)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters[0].Name = "m2"
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeDirectly}}
	})
	w.pass()
	if diff := cmp.Diff([]string{"m2"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	old := &works.Items[0]
	if err := w.store.Get(t.Context(), client.ObjectKeyFromObject(old), old); err != nil || old.DeletionTimestamp == nil {
		t.Errorf("the old Work is to be there, in deletion, for the case that its cluster returns: %v", err)
	}
}

func TestADeletedBindingTakesItsWorksAlongAndNoOthers(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	stranger := &workv1alpha1.Work{}
	stranger.Namespace, stranger.Name = "karmada-es-m9", "web"
	stranger.Labels = map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "id-1"}
	stranger.Annotations = map[string]string{
		workv1alpha2.ResourceBindingNamespaceAnnotation: "other", workv1alpha2.ResourceBindingNameAnnotation: "web-deployment",
	}
	if err := w.store.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Delete(t.Context(), bindingTo()); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if diff := cmp.Diff([]string{"m9"}, w.clusters()); diff != "" {
		t.Errorf("a binding that was copied with its id took Works of the other (-want +got):\n%s", diff)
	}
	err := w.store.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web-deployment"}, &workv1alpha2.ResourceBinding{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the binding is still held: %v", err)
	}
}

func TestATemplateThatIsGoneEndsThePassQuietly(t *testing.T) {
	w := newWorld(t, cluster("m1"), bindingTo("m1"))
	if result, requests := w.pass(); len(requests) != 0 || result.RequeueAfter != 0 {
		t.Errorf("got %v, %v", result, requests)
	}
}

func TestAWorkThatALivingBindingHoldsIsNotTakenOver(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	rival := bindingTo("m1")
	rival.Namespace, rival.UID = "rival", "binding-2"
	rival.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] = "id-2"
	w.requests = nil
	result, err := w.ensure(t.Context(), rival, nil)
	if err != nil || len(w.requests) != 0 || result.RequeueAfter != waitRetry {
		t.Errorf("got %v, %v, requests %v", result, err, w.requests)
	}
}

func TestAnOrphanIsKeptWhileTheViewOfItsBindingIsOld(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.pass()
	old := bindingTo()
	old.Generation = 7
	works, err := w.worksOf(t.Context(), old)
	if err != nil || len(works) != 1 {
		t.Fatalf("got %v, %v", works, err)
	}
	if result, err := w.ensure(t.Context(), old, works); err != nil || result.RequeueAfter != lagDelay {
		t.Errorf("got %v, %v", result, err)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestWithTheGateAnOverrideThatRenamesTheObjectReplacesTheWork(t *testing.T) {
	w := newWorld(t, cluster("m1"), deployment(), bindingTo("m1"))
	w.options.Allowed.Identity = true
	w.pass()
	rename := &policyv1alpha1.ClusterOverridePolicy{}
	rename.Name = "rename"
	rename.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "/metadata/name", Operator: policyv1alpha1.OverriderOpReplace}},
	}}}
	rename.Spec.OverrideRules[0].Overriders.Plaintext[0].Value.Raw = []byte(`"shop-window"`)
	if err := w.store.Create(t.Context(), rename); err != nil {
		t.Fatal(err)
	}
	_, requests := w.pass()
	if diff := cmp.Diff([]string{"create *v1alpha1.Work", "delete *v1alpha1.Work"}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if all := w.ids(); len(all) != 2 {
		t.Errorf("the old and the new Work have the ids %v", all)
	}
}

func TestTheSameLoopServesClusterResourceBindings(t *testing.T) {
	bound := &workv1alpha2.ClusterResourceBinding{}
	bound.Name = "mall-namespace"
	bound.Finalizers = []string{workv1alpha2.ClusterResourceBindingControllerFinalizer}
	bound.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "id-1"}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "mall"}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	w := newWorld(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall"}}, cluster("m1"), bound)
	w.namespaced = false
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "mall-namespace"}}
	if _, err := w.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m1"}, w.clusters()); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if err := w.store.Delete(t.Context(), bound); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if left := w.clusters(); len(left) != 0 {
		t.Errorf("Works are left in %v", left)
	}
}

func TestTheWorkOfANamespaceThatGoesEverywhereIsGivenBackInsteadOfDeleted(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "mall", UID: "mall-1", Controller: new(true)}
	alive := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", UID: "mall-1"}}
	recreated := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mall", UID: "mall-2"}}
	ending := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "mall", UID: "mall-1", Finalizers: []string{"kubernetes"}, DeletionTimestamp: new(metav1.Now()),
	}}
	cases := map[string]struct {
		namespace []client.Object
		owners    []metav1.OwnerReference
		kept      bool
	}{
		"a Namespace that goes on":              {[]client.Object{alive}, []metav1.OwnerReference{owner}, true},
		"a Namespace in deletion":               {[]client.Object{ending}, []metav1.OwnerReference{owner}, false},
		"a Namespace that is gone":              {nil, []metav1.OwnerReference{owner}, false},
		"another Namespace of that name":        {[]client.Object{recreated}, []metav1.OwnerReference{owner}, false},
		"a Namespace that goes by policy alone": {[]client.Object{alive}, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.namespace, cluster("m1"), deployment(), bindingTo("m1"))...)
			w.pass()
			w.own(tc.owners)
			w.change(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
			w.pass()
			left := w.works()
			if !tc.kept {
				if len(w.clusters()) != 0 {
					t.Errorf("left are %v", left)
				}
				return
			}
			if len(left) != 1 || work.Bound(&left[0]) || left[0].DeletionTimestamp != nil {
				t.Errorf("left are %v", left)
			}
			if _, requests := w.pass(); len(requests) != 0 {
				t.Errorf("the next pass asked for %v", requests)
			}
		})
	}
}

func TestAWorkThatAppearsWhereItHasNoReasonToBeLeadsBackToItsBinding(t *testing.T) {
	w := newWorld(t, bindingTo("m1"))
	in := func(cluster string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(cluster), Name: "web"}}
	}
	key := client.ObjectKeyFromObject(bindingTo())
	if !w.expects(t.Context(), key, in("m1")) {
		t.Error("a target is not expected")
	}
	if w.expects(t.Context(), key, in("m2")) {
		t.Error("a cluster that is no target is expected")
	}
	if w.expects(t.Context(), types.NamespacedName{Namespace: "shop", Name: "gone"}, in("m1")) {
		t.Error("a binding that is gone expects a Work")
	}
}
