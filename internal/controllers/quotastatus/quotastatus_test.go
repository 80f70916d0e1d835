package quotastatus

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "team"}}

func newQuota() *policyv1alpha1.FederatedResourceQuota {
	created := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team", UID: "quota"}}
	created.Spec.Overall = cpu("10")
	for _, cluster := range []string{"m1", "m2", "m3"} {
		created.Spec.StaticAssignments = append(created.Spec.StaticAssignments,
			policyv1alpha1.StaticClusterAssignment{ClusterName: cluster, Hard: cpu("3")})
	}
	return created
}

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// newWork returns the Work of a cluster with the status that the cluster reported. An empty status means
// that it reported none.
func newWork(cluster string, applied metav1.ConditionStatus, status string) *workv1alpha1.Work {
	created := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-" + cluster, Name: "team", Labels: map[string]string{
			policyv1alpha1.FederatedResourceQuotaNamespaceLabel: "shop", policyv1alpha1.FederatedResourceQuotaNameLabel: "team",
		},
	}}
	created.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: applied}}
	reported := workv1alpha1.ManifestStatus{}
	if status != "" {
		reported.Status = &runtime.RawExtension{Raw: []byte(status)}
	}
	created.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{reported}
	return created
}

func newStore(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(newQuota()).
		WithIndex(&workv1alpha1.Work{}, loop.WorksByQuota.Name, loop.WorksByQuota.Keys).Build()
}

func newReconciler(karmada client.Client, enforced bool) *reconciler {
	return &reconciler{enforced: enforced, karmada: karmada, events: loop.NewEvents(record.NewFakeRecorder(10))}
}

// describeStatus returns the CPUs in the status.
func describeStatus(ctx context.Context, from client.Reader) (string, error) {
	stored := newQuota()
	err := from.Get(ctx, request.NamespacedName, stored)
	text := fmt.Sprintf("%s of %s", stored.Status.OverallUsed.Cpu(), stored.Status.Overall.Cpu())
	for _, each := range stored.Status.AggregatedStatus {
		text += fmt.Sprintf(", %s %s of %s", each.ClusterName, each.Used.Cpu(), each.Hard.Cpu())
	}
	return text, err
}

func TestStatus(t *testing.T) {
	used := func(amount string) string { return `{"hard":{"cpu":"3"},"used":{"cpu":"` + amount + `"}}` }
	cases := map[string]struct {
		enforced bool
		works    []client.Object
		want     string
	}{
		"no cluster has reported": {false, nil, "0 of 10"},
		"two clusters": {false, []client.Object{newWork("m2", metav1.ConditionTrue, used("1500m")), newWork("m1", metav1.ConditionTrue, used("2"))},
			"3500m of 10, m1 2 of 3, m2 1500m of 3"},
		"a cluster that has not applied its quota": {false, []client.Object{
			newWork("m1", metav1.ConditionTrue, used("2")), newWork("m2", metav1.ConditionFalse, used("1"))}, "2 of 10, m1 2 of 3"},
		"a cluster that has not reported a status": {false, []client.Object{
			newWork("m1", metav1.ConditionTrue, ""), newWork("m2", metav1.ConditionTrue, used("1"))}, "1 of 10, m2 1 of 3"},
		"a cluster that reports nonsense": {false, []client.Object{newWork("m1", metav1.ConditionTrue, `{"used":{"cpu":"x"}}`),
			newWork("m2", metav1.ConditionTrue, `{"hard":{"cpu":"3"},"used":{"cpu":"-4","secrets":"9"}}`)}, "0 of 10, m2 0 of 3"},
		"a cluster without an assignment": {false, []client.Object{newWork("m9", metav1.ConditionTrue, used("2"))}, "0 of 10"},
		"enforced quotas report the clusters only": {true, []client.Object{newWork("m1", metav1.ConditionTrue, used("2"))},
			"0 of 0, m1 2 of 3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, append(tc.works, newQuota())...)
			r := newReconciler(store, tc.enforced)
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			got, err := describeStatus(t.Context(), store)
			if err != nil || got != tc.want {
				t.Errorf("status %q, want %q: %v", got, tc.want, err)
			}
		})
	}
}

func TestUnchangedStatusIsNotWritten(t *testing.T) {
	store := newStore(t, newWork("m1", metav1.ConditionTrue, `{"hard":{"cpu":"3000m"},"used":{"cpu":"1"}}`), newQuota())
	versions := map[string]bool{}
	for range 3 {
		if _, err := newReconciler(store, false).Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		stored := newQuota()
		if err := store.Get(t.Context(), request.NamespacedName, stored); err != nil {
			t.Fatal(err)
		}
		versions[stored.ResourceVersion] = true
	}
	if len(versions) != 1 {
		t.Errorf("the quota was written %d times, want once", len(versions))
	}
}

func TestStatusSurvivesCrashesAroundWrites(t *testing.T) {
	looptest.CrashCase{
		NewStore: func() client.WithWatch {
			return newStore(t, newWork("m1", metav1.ConditionTrue, `{"hard":{"cpu":"3"},"used":{"cpu":"1"}}`), newQuota())
		},
		NewLoop: func(karmada, _ client.WithWatch) func(context.Context) error {
			r := newReconciler(karmada, false)
			return func(ctx context.Context) error {
				_, err := r.Reconcile(ctx, request)
				return err
			}
		},
		FinalState: describeStatus,
	}.Run(t)
}

func TestOnlyRelevantQuotaUpdatesAreProcessed(t *testing.T) {
	older := newQuota()
	change := func(change func(*policyv1alpha1.FederatedResourceQuota)) *policyv1alpha1.FederatedResourceQuota {
		newer := older.DeepCopy()
		change(newer)
		return newer
	}
	cases := map[string]struct {
		newer *policyv1alpha1.FederatedResourceQuota
		want  bool
	}{
		"another specification": {change(func(q *policyv1alpha1.FederatedResourceQuota) { q.Generation++ }), true},
		"a status of a user":    {change(func(q *policyv1alpha1.FederatedResourceQuota) { q.Status.OverallUsed = cpu("1") }), true},
		"the ledger of the admission": {change(func(q *policyv1alpha1.FederatedResourceQuota) {
			q.Annotations = map[string]string{policyv1alpha1.FederatedResourceQuotaLedgerAnnotation: "{}"}
		}), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := onlyChangedQuotas().Update(event.UpdateEvent{ObjectOld: older, ObjectNew: tc.newer}); got != tc.want {
				t.Errorf("processed: %v, want %v", got, tc.want)
			}
		})
	}
}
