package aggregated_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/testenv/testetcd"
)

func TestClusterAPI(t *testing.T) {
	config := startServer(t, newOptions(t, testetcd.Start(t)))
	karmada := newClient(t, config)
	tests := map[string]func(t *testing.T, karmada client.WithWatch){
		"create empties the status and sets defaults":              testCreate,
		"an invalid cluster is rejected with the fields":           testInvalid,
		"an update keeps the status and increments the generation": testUpdate,
		"status and labels do not change the generation":           testGenerationUnchanged,
		"a finalizer delays deletion":                              testFinalizer,
		"a status update changes the status only":                  testStatusOnly,
		"an update of an unknown name creates nothing":             testUpdateUnknown,
		"an update without resourceVersion overwrites":             testUpdateWithoutResourceVersion,
		"an ID is registered once":                                 testUniqueID,
		"an ID is registered once by concurrent creates":           testConcurrentIDs,
		"a dry run reports a registered ID":                        testDryRunUniqueID,
		"server-side apply keeps fields of other managers":         testServerSideApply,
		"a watch reports all events":                               testWatch,
		"a field selector selects by name":                         testFieldSelector,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := karmada.DeleteAllOf(context.Background(), &clusterv1alpha1.Cluster{}); err != nil {
					t.Error(err)
				}
			})
			test(t, karmada)
		})
	}
	t.Run("a table has the columns of kubectl get", func(t *testing.T) { testTable(t, config, karmada) })
}

func newMemberCluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push},
	}
}

// createCluster creates a Cluster and returns the Cluster of the response.
func createCluster(t *testing.T, karmada client.Client, c *clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	t.Helper()
	if err := karmada.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func getCluster(t *testing.T, karmada client.Client, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	var c clusterv1alpha1.Cluster
	if err := karmada.Get(t.Context(), types.NamespacedName{Name: name}, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

func testCreate(t *testing.T, karmada client.WithWatch) {
	c := newMemberCluster("m1")
	c.Spec.Zone = "z1"
	c.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}
	c.Status.KubernetesVersion = "v1.2.3"
	createCluster(t, karmada, c)
	got := getCluster(t, karmada, "m1")
	if got.Generation != 1 || got.Status.KubernetesVersion != "" {
		t.Errorf("generation %d, status %v; want 1 and an empty status", got.Generation, got.Status)
	}
	if diff := cmp.Diff(cluster.DefaultModels(), got.Spec.ResourceModels); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if got.Spec.Zone != "" || !cmp.Equal(got.Spec.Zones, []string{"z1"}) {
		t.Errorf("zone %q, zones %q; want the zone in zones", got.Spec.Zone, got.Spec.Zones)
	}
	if got.Spec.Taints[0].TimeAdded.IsZero() {
		t.Error("the NoExecute taint has no timeAdded")
	}
}

func testInvalid(t *testing.T, karmada client.WithWatch) {
	c := newMemberCluster("m1")
	c.Spec.SyncMode = "Both"
	c.Spec.APIEndpoint = "nowhere"
	err := karmada.Create(t.Context(), c)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.syncMode") || !strings.Contains(err.Error(), "spec.apiEndpoint") {
		t.Errorf("got %v, want Invalid with both fields", err)
	}
}

func testUpdate(t *testing.T, karmada client.WithWatch) {
	c := createCluster(t, karmada, newMemberCluster("m1"))
	c.Status.KubernetesVersion = "v1.36.3"
	if err := karmada.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Spec.Region = "r1"
	c.Status.KubernetesVersion = "v0"
	if err := karmada.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := getCluster(t, karmada, "m1")
	if got.Generation != 2 || got.Spec.Region != "r1" || got.Status.KubernetesVersion != "v1.36.3" {
		t.Errorf("generation %d, region %q, version %q; want 2, r1, v1.36.3", got.Generation, got.Spec.Region, got.Status.KubernetesVersion)
	}
}

func testGenerationUnchanged(t *testing.T, karmada client.WithWatch) {
	c := createCluster(t, karmada, newMemberCluster("m1"))
	c.Labels = map[string]string{"a": "b"}
	if err := karmada.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Status.KubernetesVersion = "v1.36.3"
	if err := karmada.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	// Another order of the resource models is not a change of the spec.
	c.Spec.ResourceModels[0], c.Spec.ResourceModels[1] = c.Spec.ResourceModels[1], c.Spec.ResourceModels[0]
	if err := karmada.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := getCluster(t, karmada, "m1"); got.Generation != 1 || got.Labels["a"] != "b" {
		t.Errorf("got generation %d, labels %v; want 1, a=b", got.Generation, got.Labels)
	}
}

func testFinalizer(t *testing.T, karmada client.WithWatch) {
	c := newMemberCluster("m1")
	c.Finalizers = []string{"example.com/wait"}
	createCluster(t, karmada, c)
	if err := karmada.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := getCluster(t, karmada, "m1")
	if got.DeletionTimestamp.IsZero() {
		t.Error("the cluster is not being deleted")
	}
	got.Finalizers = nil
	if err := karmada.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Get(t.Context(), types.NamespacedName{Name: "m1"}, got); !apierrors.IsNotFound(err) {
		t.Errorf("got %v after the last finalizer, want not found", err)
	}
}

func testStatusOnly(t *testing.T, karmada client.WithWatch) {
	c := newMemberCluster("m1")
	c.Labels = map[string]string{"a": "b"}
	createCluster(t, karmada, c)
	c.Spec.Region, c.Labels, c.Finalizers = "elsewhere", nil, []string{"example.com/stray"}
	c.Status.KubernetesVersion = "v1.36.3"
	if err := karmada.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got := getCluster(t, karmada, "m1")
	if got.Status.KubernetesVersion != "v1.36.3" {
		t.Error("the status is not stored")
	}
	if got.Spec.Region != "" || got.Labels["a"] != "b" || len(got.Finalizers) != 0 || got.Generation != 1 {
		t.Errorf("region %q, labels %v, finalizers %v, generation %d changed", got.Spec.Region, got.Labels, got.Finalizers, got.Generation)
	}
}

func testUpdateUnknown(t *testing.T, karmada client.WithWatch) {
	if err := karmada.Update(t.Context(), newMemberCluster("unknown")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want not found", err)
	}
}

func testUpdateWithoutResourceVersion(t *testing.T, karmada client.WithWatch) {
	createCluster(t, karmada, newMemberCluster("m1"))
	c := newMemberCluster("m1")
	c.Spec.Region = "r1"
	if err := karmada.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	stale := getCluster(t, karmada, "m1")
	c.ResourceVersion, c.Spec.Region = "", "r2"
	if err := karmada.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	stale.Spec.Region = "r3"
	if err := karmada.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("got %v for a stale resourceVersion, want a conflict", err)
	}
}

func testUniqueID(t *testing.T, karmada client.WithWatch) {
	first := newMemberCluster("m1")
	first.Spec.ID = "id-1"
	createCluster(t, karmada, first)

	second := newMemberCluster("m2")
	second.Spec.ID = "id-1"
	err := karmada.Create(t.Context(), second)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the cluster ID id-1 or the cluster name m1 has been registered") {
		t.Errorf("creating with a registered ID: got %v", err)
	}

	second = createCluster(t, karmada, newMemberCluster("m2"))
	second.Spec.ID = "id-1"
	if err := karmada.Update(t.Context(), second); !apierrors.IsInvalid(err) {
		t.Errorf("updating to a registered ID: got %v, want Invalid", err)
	}
	if err := karmada.Create(t.Context(), func() *clusterv1alpha1.Cluster { c := newMemberCluster("m1"); c.Spec.ID = "id-1"; return c }()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("registering the same cluster again: got %v, want already exists", err)
	}
	createCluster(t, karmada, newMemberCluster("m3")) // clusters without an ID are no duplicates
}

func testDryRunUniqueID(t *testing.T, karmada client.WithWatch) {
	first := newMemberCluster("m1")
	first.Spec.ID = "id-1"
	createCluster(t, karmada, first)
	second := newMemberCluster("m2")
	second.Spec.ID = "id-1"
	err := karmada.Create(t.Context(), second, client.DryRunAll)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the cluster ID id-1 or the cluster name m1 has been registered") {
		t.Errorf("dry run of a creation with a registered ID: got %v", err)
	}
	second = createCluster(t, karmada, newMemberCluster("m2"))
	second.Spec.ID = "id-1"
	if err := karmada.Update(t.Context(), second, client.DryRunAll); !apierrors.IsInvalid(err) {
		t.Errorf("dry run of an update to a registered ID: got %v, want Invalid", err)
	}
	first.Spec.Region = "r1"
	if err := karmada.Update(t.Context(), first, client.DryRunAll); err != nil {
		t.Errorf("dry run of an update that keeps the ID: got %v", err)
	}
}

func testConcurrentIDs(t *testing.T, karmada client.WithWatch) {
	const writers = 8
	errs := make([]error, writers)
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			c := newMemberCluster(fmt.Sprintf("m%d", i))
			c.Spec.ID = "same"
			errs[i] = karmada.Create(t.Context(), c)
		})
	}
	group.Wait()
	accepted := 0
	for _, err := range errs {
		if err == nil {
			accepted++
		}
	}
	if accepted != 1 {
		t.Errorf("%d of %d clusters with the same ID are accepted: %v", accepted, writers, errs)
	}
}

func testServerSideApply(t *testing.T, karmada client.WithWatch) {
	apply := func(object, owner string) error {
		return karmada.Patch(t.Context(), newMemberCluster("m1"), client.RawPatch(types.ApplyPatchType, []byte(object)), client.FieldOwner(owner))
	}
	const head = `"apiVersion":"cluster.karmada.io/v1alpha1","kind":"Cluster","metadata":{"name":"m1"}`
	if err := apply(`{`+head+`,"spec":{"syncMode":"Pull","region":"r1"}}`, "one"); err != nil {
		t.Fatal(err)
	}
	if err := apply(`{`+head+`,"spec":{"provider":"p"}}`, "two"); err != nil {
		t.Fatal(err)
	}
	if err := apply(`{`+head+`,"spec":{"syncMode":"Pull","taints":[{"key":"k","effect":"NoSchedule"}]}}`, "one"); err != nil {
		t.Fatal(err)
	}
	got := getCluster(t, karmada, "m1")
	if got.Spec.Region != "" || got.Spec.Provider != "p" || len(got.Spec.ResourceModels) != 9 {
		t.Errorf("region %q, provider %q, %d models; want none, p, 9", got.Spec.Region, got.Spec.Provider, len(got.Spec.ResourceModels))
	}
	if len(got.Spec.Taints) != 1 || len(got.ManagedFields) != 2 {
		t.Errorf("%d taints, %d owners of fields; want 1 and 2", len(got.Spec.Taints), len(got.ManagedFields))
	}
}

func testWatch(t *testing.T, karmada client.WithWatch) {
	var list clusterv1alpha1.ClusterList
	if err := karmada.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	watcher, err := karmada.Watch(t.Context(), &clusterv1alpha1.ClusterList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	c := createCluster(t, karmada, newMemberCluster("m1"))
	c.Spec.Region = "r1"
	if err := karmada.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		select {
		case event := <-watcher.ResultChan():
			if object, ok := event.Object.(*clusterv1alpha1.Cluster); !ok || event.Type != want || object.Name != "m1" {
				t.Errorf("got %s of %v, want %s of m1", event.Type, event.Object, want)
			}
		case <-time.After(maxWait):
			t.Fatalf("no event within %s, want %s", maxWait, want)
		}
	}
}

func testFieldSelector(t *testing.T, karmada client.WithWatch) {
	createCluster(t, karmada, newMemberCluster("m1"))
	createCluster(t, karmada, newMemberCluster("m2"))
	var list clusterv1alpha1.ClusterList
	if err := karmada.List(t.Context(), &list, client.MatchingFields{"metadata.name": "m2"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "m2" {
		t.Errorf("got %d clusters, want m2", len(list.Items))
	}
	if err := karmada.List(t.Context(), &list, client.MatchingFields{"spec.region": "r"}); !apierrors.IsBadRequest(err) {
		t.Errorf("selecting by another field: got %v, want a bad request", err)
	}
}

func testTable(t *testing.T, config *rest.Config, karmada client.WithWatch) {
	c := newMemberCluster("m1")
	c.Spec.Zones = []string{"z1", "z2"}
	c.Spec.APIEndpoint = "https://10.0.0.1:6443"
	c.Spec.Taints = []corev1.Taint{
		{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoExecute},
		{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule},
	}
	createCluster(t, karmada, c)
	c.Status.KubernetesVersion = "v1.36.3"
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ClusterReady"})
	if err := karmada.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	createCluster(t, karmada, newMemberCluster("m2"))

	config = rest.CopyConfig(config)
	config.GroupVersion = &clusterv1alpha1.GroupVersion
	config.NegotiatedSerializer = metav1Codecs()
	config.APIPath = "/apis"
	raw, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	body, err := raw.Get().Resource("clusters").SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, fmt.Sprintf("%s/%d", column.Name, column.Priority))
	}
	wantColumns := []string{"Name/0", "Version/0", "Mode/0", "Ready/0", "Age/0", "Zones/1", "Region/1", "Provider/1", "API-Endpoint/1", "Proxy-URL/1", "Taints/1"}
	if diff := cmp.Diff(wantColumns, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	const age = 4
	for i := range table.Rows {
		if cell, ok := table.Rows[i].Cells[age].(string); !ok || !strings.HasSuffix(cell, "s") {
			t.Errorf("age of row %d is %v, want seconds", i, table.Rows[i].Cells[age])
		}
		table.Rows[i].Cells[age] = "age"
	}
	want := [][]any{
		{"m1", "v1.36.3", "Push", "True", "age", "z1,z2", "<none>", "<none>", "https://10.0.0.1:6443", "<none>", "cluster.karmada.io/unschedulable:NoSchedule,dedicated=gpu:NoExecute"},
		{"m2", "", "Push", "Unknown", "age", "<none>", "<none>", "<none>", "", "<none>", "<none>"},
	}
	var got [][]any
	for _, row := range table.Rows {
		got = append(got, row.Cells)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// metav1Codecs returns codecs that decode errors, for clients that read raw bodies.
func metav1Codecs() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}
