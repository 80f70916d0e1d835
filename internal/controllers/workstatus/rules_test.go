package workstatus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// rulesFixture is a running controller with the Work web, which contains the ConfigMap a in cluster
// m1. It is stopped at the end of the test.
type rulesFixture struct {
	*controller
	store client.Client
	table interpreters.Table
	// passes counts the passes of the queues.
	passes int
}

func newRulesFixture(t *testing.T) *rulesFixture {
	t.Helper()
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
	karmadaWork.Spec.Workload.Manifests = newManifests(t, "a")
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &rulesFixture{store: fake.NewClientBuilder().WithScheme(scheme).WithObjects(karmadaWork).WithStatusSubresource(karmadaWork).Build()}
	f.controller = &controller{
		karmada: f.store, rules: &f.table, events: loop.NewEvents(record.NewFakeRecorder(10)),
		reports: loop.NewStatusWriter(f.store, f.store, loop.StatusWriterOptions{Workers: 1}), podChecks: newPodCheckSchedule(time.Now),
	}
	f.queues = loop.NewMemberQueues(loop.MemberQueueOptions{Name: Name, Workers: 1, OnRemoved: f.stopTrackingCluster}, func(ctx context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
		f.passes++
		stored := &workv1alpha1.Work{}
		if err := f.store.Get(ctx, key, stored); err != nil {
			return reconcile.Result{}, err
		}
		_, err := f.reflect(ctx, fakeMember{}, stored)
		return reconcile.Result{}, err
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for _, run := range []func(context.Context) error{f.reports.Start, f.queues.Start, interpreters.NewRunnable(f.rules, f.requeueForRules)} {
		go func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	return f
}

// health returns the reported health after all reports are written.
func (r *rulesFixture) health(t *testing.T) workv1alpha1.ResourceHealth {
	t.Helper()
	<-time.After(time.Minute)
	synctest.Wait()
	stored := &workv1alpha1.Work{}
	if err := r.store.Get(t.Context(), client.ObjectKey{Namespace: "karmada-es-m1", Name: "web"}, stored); err != nil {
		t.Fatal(err)
	}
	if len(stored.Status.ManifestStatuses) == 0 {
		return ""
	}
	return stored.Status.ManifestStatuses[0].Health
}

func fixedHealth(healthy bool) interpreter.Rules {
	return interpreter.Rules{IsHealthy: func(context.Context, *unstructured.Unstructured) (bool, error) { return healthy, nil }}
}

func TestChangedHealthRuleReachesReportedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newRulesFixture(t)
		f.table.Set(configMaps, fixedHealth(false))
		if f.health(t); f.passes != 0 {
			t.Errorf("%d passes of a Work that was never interpreted", f.passes)
		}
		f.queues.Add("m1", types.NamespacedName{Namespace: "karmada-es-m1", Name: "web"}, loop.LivePriority, 0)
		got := []workv1alpha1.ResourceHealth{f.health(t)}
		f.table.Set(configMaps, fixedHealth(true))
		got = append(got, f.health(t))
		f.table.Set(configMaps, fixedHealth(false))
		got = append(got, f.health(t))
		f.table.Delete(configMaps)
		got = append(got, f.health(t))
		if diff := cmp.Diff([]workv1alpha1.ResourceHealth{"Unhealthy", "Healthy", "Unhealthy", "Healthy"}, got); diff != "" {
			t.Errorf("health after each change (-want +got):\n%s", diff)
		}
		before := f.passes
		f.table.Set(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, fixedHealth(false))
		if f.health(t); f.passes != before {
			t.Error("a rule of another kind causes a pass")
		}
	})
}

func TestWorksThatAreNotReflectedAnyMoreAreDropped(t *testing.T) {
	key := types.NamespacedName{Namespace: "karmada-es-m1", Name: "web"}
	tests := map[string]func(*testing.T, *controller, client.Client){
		"a deleted Work": func(t *testing.T, c *controller, store client.Client) {
			t.Helper()
			if err := store.Delete(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.reconcile(t.Context(), "m1", key); err != nil {
				t.Fatal(err)
			}
		},
		"a Work of a deleted cluster": func(_ *testing.T, c *controller, _ client.Client) {
			c.newClusterHandler().OnDelete(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
		},
	}
	for name, remove := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newRulesFixture(t)
				f.queues.Add("m1", key, loop.LivePriority, 0)
				synctest.Wait()
				if got := f.interpreted.Works(interpreter.AllKinds()); len(got) != 1 {
					t.Fatalf("indexed Works %v", got)
				}
				remove(t, f.controller, f.store)
				synctest.Wait()
				if got := f.interpreted.Works(interpreter.AllKinds()); len(got) != 0 {
					t.Errorf("indexed Works %v", got)
				}
			})
		})
	}
}
