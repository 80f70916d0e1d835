package dependencies

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
)

// suspendIn suspends the dispatching of web to clusters, or resumes it without clusters.
func (f *fixture) suspendIn(clusters ...string) {
	f.t.Helper()
	f.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Suspension = nil
		if len(clusters) > 0 {
			b.Spec.Suspension = &workv1alpha2.Suspension{}
			b.Spec.Suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: clusters}
		}
	})
}

// expectAttached checks in which clusters an attached binding is required and suspended.
func (f *fixture) expectAttached(name string, required, suspended []string) {
	f.t.Helper()
	bound := f.binding(name)
	expectEqual(f.t, "clusters of "+name, sets.List(binding.ExpectedClusters(&bound.Spec)), required...)
	var got []string
	for _, cluster := range required {
		if binding.IsDispatchSuspended(bound, cluster) {
			got = append(got, cluster)
		}
	}
	expectEqual(f.t, "suspended clusters of "+name, got, suspended...)
}

// expectSettled checks that another reconcile of web changes nothing.
func (f *fixture) expectSettled() {
	f.t.Helper()
	_, writes, events := f.reconcile("web-deployment")
	expectEqual(f.t, "writes of another reconcile", writes)
	expectEqual(f.t, "events of another reconcile", events)
}

// isAttached reports whether a binding exists and is not being deleted.
func (f *fixture) isAttached(name string) bool {
	f.t.Helper()
	bound := &workv1alpha2.ResourceBinding{}
	err := f.store.Get(f.t.Context(), bindingKey(name), bound)
	if client.IgnoreNotFound(err) != nil {
		f.t.Fatal(err)
	}
	return err == nil && bound.DeletionTimestamp == nil
}

func newConfigMap() *corev1.ConfigMap {
	made := settingsConfigMap()
	made.Name, made.UID = "new", "uid-new"
	return made
}

// A suspended copy keeps its dependencies, whatever changes in the control plane.
func TestSuspendedCopyKeepsDependencies(t *testing.T) {
	tests := map[string]struct {
		change func(*fixture)
	}{
		"the template refers to another object": {change: func(f *fixture) { f.references = []dependency.Reference{referenceTo("ConfigMap", "new")} }},
		"the template refers to no object":      {change: func(f *fixture) { f.references = nil }},
		"propagateDeps is removed": {change: func(f *fixture) {
			f.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
		}},
		"the template is deleted": {
			change: func(f *fixture) {
				f.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) {
					controllerutil.AddFinalizer(b, workv1alpha2.BindingControllerFinalizer)
				})
				if err := f.store.Delete(f.t.Context(), f.binding("web-deployment")); err != nil {
					f.t.Fatal(err)
				}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newAttachedFixture(t, newConfigMap())
			w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m2", Replicas: 1})
			})
			w.reconcile("web-deployment")
			w.suspendIn("m1")
			w.reconcile("web-deployment")
			w.expectAttached("settings-configmap", []string{"m1", "m2"}, []string{"m1"})
			w.expectSettled()
			tc.change(w)
			w.reconcile("web-deployment")
			w.expectAttached("settings-configmap", []string{"m1"}, []string{"m1"})
			if w.isAttached("new-configmap") {
				w.expectAttached("new-configmap", []string{"m1", "m2"}, []string{"m1"})
			}
			if !slices.Contains(w.binding("web-deployment").Finalizers, workv1alpha2.BindingDependenciesDistributorFinalizer) {
				t.Error("the dependent has no finalizer, although a binding is attached to it")
			}
			w.expectSettled()
			w.suspendIn()
			w.reconcile("web-deployment")
			if w.isAttached("settings-configmap") {
				t.Error("the binding stays after the resume")
			}
			w.reconcile("web-deployment") // queued by the deletion of the binding
			if binding.HasSuspendedDependents(w.binding("settings-configmap")) {
				t.Error("a suspension keeps the binding that is being deleted")
			}
			w.expectSettled()
		})
	}
}

// A workload moves from m1 to m2, and its template changes before the copy in m2 is healthy.
func TestEvictedCopyKeepsDependencies(t *testing.T) {
	w := newAttachedFixture(t, newConfigMap())
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 1}}
		b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PurgeMode: policyv1alpha1.PurgeModeGracefully}}
	})
	w.reconcile("web-deployment")
	w.expectAttached("settings-configmap", []string{"m1", "m2"}, nil)
	w.references = []dependency.Reference{referenceTo("ConfigMap", "new")}
	w.reconcile("web-deployment")
	w.expectAttached("settings-configmap", []string{"m1"}, nil)
	w.expectSettled()
	w.updateBinding("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.GracefulEvictionTasks = nil })
	w.reconcile("web-deployment")
	if w.isAttached("settings-configmap") {
		t.Error("the binding stays after the eviction")
	}
}

// The template of a dependency of a suspended workload is deleted, and with it the binding, which
// stays until the workload is resumed.
func TestDeletedDependencyIsResumed(t *testing.T) {
	w := newAttachedFixture(t)
	w.suspendIn("m1")
	w.reconcile("web-deployment")
	if err := w.store.Delete(t.Context(), settingsConfigMap()); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Delete(t.Context(), w.binding("settings-configmap")); err != nil {
		t.Fatal(err)
	}
	w.expectSettled()
	w.expectAttached("settings-configmap", []string{"m1"}, []string{"m1"})
	w.suspendIn()
	_, writes, _ := w.reconcile("web-deployment")
	expectEqual(t, "writes after the resume", writes, "patch settings-configmap")
	if binding.HasSuspendedDependents(w.binding("settings-configmap")) {
		t.Error("the binding is still suspended")
	}
}
