package search_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/standalone/etcd"
	"karmada.io/karmada/internal/testenv/testetcd"
)

func TestResourceRegistries(t *testing.T) {
	storage := testetcd.Start(t)
	config := startSearch(t, newOptions(t, storage, startControlPlane(t, storage)))
	api := newClient(t, config)
	for name, test := range map[string]func(t *testing.T, api client.WithWatch){
		"create empties the status":                             testCreate,
		"an invalid registry is rejected with the fields":       testInvalid,
		"an update keeps the status and counts generations":     testUpdate,
		"a status update changes the status only":               testStatusOnly,
		"an update of an unknown name creates nothing":          testUpdateUnknown,
		"an update without resourceVersion overwrites":          testUpdateWithoutResourceVersion,
		"server-side apply keeps fields of other managers":      testServerSideApply,
		"a watch reports the changes of one registry":           testWatch,
		"a field selector selects by name":                      testFieldSelector,
		"a registry of every Event of every cluster has a hint": func(t *testing.T, _ client.WithWatch) { testWarning(t, config) },
		"the key in etcd is that of existing installations":     func(t *testing.T, api client.WithWatch) { testStorageKey(t, api, storage) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() {
				if err := api.DeleteAllOf(context.Background(), &searchv1alpha1.ResourceRegistry{}); err != nil {
					t.Error(err)
				}
			})
			test(t, api)
		})
	}
	t.Run("a table has name and creation time", func(t *testing.T) { testTable(t, config, api) })
	t.Run("the discovery lists the resources", func(t *testing.T) { testDiscovery(t, config) })
	t.Run("an unknown search names the known ones", func(t *testing.T) { testUnknownSearch(t, config) })
}

func newRegistry(name string, kinds ...string) *searchv1alpha1.ResourceRegistry {
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: name}}
	registry.Spec.TargetCluster.ClusterNames = []string{"m1"}
	for _, kind := range kinds {
		registry.Spec.ResourceSelectors = append(registry.Spec.ResourceSelectors, searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: kind})
	}
	return registry
}

func create(t *testing.T, api client.Client, registry *searchv1alpha1.ResourceRegistry) *searchv1alpha1.ResourceRegistry {
	t.Helper()
	if err := api.Create(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	return registry
}

func get(t *testing.T, api client.Client, name string) *searchv1alpha1.ResourceRegistry {
	t.Helper()
	registry := &searchv1alpha1.ResourceRegistry{}
	if err := api.Get(t.Context(), types.NamespacedName{Name: name}, registry); err != nil {
		t.Fatal(err)
	}
	return registry
}

func newCondition(reason string) metav1.Condition {
	return metav1.Condition{Type: "Tested", Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now().Rfc3339Copy()}
}

// hasCondition reports whether a registry has the condition of a test. The server may write others.
func hasCondition(registry *searchv1alpha1.ResourceRegistry, reason string) bool {
	for _, condition := range registry.Status.Conditions {
		if condition.Type == "Tested" {
			return condition.Reason == reason
		}
	}
	return false
}

func testCreate(t *testing.T, api client.WithWatch) {
	registry := newRegistry("r1", "Pod")
	registry.Status.Conditions = []metav1.Condition{newCondition("Given")}
	create(t, api, registry)
	got := get(t, api, "r1")
	if got.Generation != 1 || hasCondition(got, "Given") {
		t.Errorf("generation %d, status %v; want 1 without the given status", got.Generation, got.Status)
	}
	if diff := cmp.Diff(newRegistry("r1", "Pod").Spec, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func testInvalid(t *testing.T, api client.WithWatch) {
	registry := newRegistry("r1", "Pod")
	registry.Spec.ResourceSelectors[0].APIVersion, registry.Spec.ResourceSelectors[0].Namespace = "a/b/c", "A_b"
	registry.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{Addresses: []string{"nowhere"}}}
	err := api.Create(t.Context(), registry)
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, want Invalid", err)
	}
	for _, want := range []string{
		`spec.resourceSelectors[0].apiVersion: Invalid value: "a/b/c"`, "spec.resourceSelectors[0].namespace", "spec.backendStore.openSearch.addresses[0]",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not contain %q", err, want)
		}
	}
}

func testUpdate(t *testing.T, api client.WithWatch) {
	registry := create(t, api, newRegistry("r1", "Pod"))
	registry.Status.Conditions = []metav1.Condition{newCondition("Stored")}
	patch(t, api.Status(), registry)
	registry = get(t, api, "r1")
	registry.Spec.ResourceSelectors[0].Kind = "Node"
	registry.Status.Conditions = nil
	registry.ResourceVersion = ""
	if err := api.Update(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	got := get(t, api, "r1")
	if got.Generation != 2 || got.Spec.ResourceSelectors[0].Kind != "Node" || !hasCondition(got, "Stored") {
		t.Errorf("generation %d, spec %v, status %v; want 2, the new spec and the old status", got.Generation, got.Spec, got.Status)
	}
	got.Labels = map[string]string{"a": "b"}
	got.ResourceVersion = ""
	if err := api.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if got := get(t, api, "r1"); got.Generation != 2 {
		t.Errorf("a label changes the generation to %d", got.Generation)
	}
}

// patch writes the status of a registry as it is, because the server may write the status too.
func patch(t *testing.T, status client.SubResourceWriter, registry *searchv1alpha1.ResourceRegistry) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"resourceSelectors": nil}, "status": map[string]any{"conditions": registry.Status.Conditions}})
	if err != nil {
		t.Fatal(err)
	}
	if err := status.Patch(t.Context(), registry, client.RawPatch(types.MergePatchType, body)); err != nil {
		t.Fatal(err)
	}
}

func testStatusOnly(t *testing.T, api client.WithWatch) {
	registry := create(t, api, newRegistry("r1", "Pod"))
	registry.Status.Conditions = []metav1.Condition{newCondition("Stored")}
	patch(t, api.Status(), registry)
	got := get(t, api, "r1")
	if !hasCondition(got, "Stored") || len(got.Spec.ResourceSelectors) != 1 || got.Generation != 1 {
		t.Errorf("status %v, spec %v, generation %d; want the new status and the old spec", got.Status, got.Spec, got.Generation)
	}
}

func testUpdateUnknown(t *testing.T, api client.WithWatch) {
	if err := api.Update(t.Context(), newRegistry("r1", "Pod")); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want NotFound", err)
	}
}

func testUpdateWithoutResourceVersion(t *testing.T, api client.WithWatch) {
	create(t, api, newRegistry("r1", "Pod"))
	if err := api.Update(t.Context(), newRegistry("r1", "Node")); err != nil {
		t.Fatal(err)
	}
	if got := get(t, api, "r1").Spec.ResourceSelectors[0].Kind; got != "Node" {
		t.Errorf("the kind is %s, want Node", got)
	}
}

func testServerSideApply(t *testing.T, api client.WithWatch) {
	apply := func(owner string, fields map[string]any) {
		t.Helper()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": searchv1alpha1.GroupVersion.String(), "kind": searchv1alpha1.ResourceRegistryKind, "metadata": map[string]any{"name": "r1"},
		}}
		for key, value := range fields {
			if err := unstructured.SetNestedField(object.Object, value, strings.Split(key, "/")...); err != nil {
				t.Fatal(err)
			}
		}
		if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner)); err != nil {
			t.Fatal(err)
		}
	}
	selectors := []any{map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	apply("one", map[string]any{"spec/resourceSelectors": selectors, "spec/targetCluster": map[string]any{"fieldSelector": map[string]any{
		"matchExpressions": []any{map[string]any{"key": "region", "operator": "In", "values": []any{"eu"}}},
	}}})
	apply("two", map[string]any{"metadata/labels": map[string]any{"team": "a"}, "spec/targetCluster": map[string]any{"clusterNames": []any{"m1"}}})
	apply("one", map[string]any{"spec/resourceSelectors": selectors, "spec/targetCluster": map[string]any{}})
	got := get(t, api, "r1")
	if got.Labels["team"] != "a" || !cmp.Equal(got.Spec.TargetCluster.ClusterNames, []string{"m1"}) || got.Spec.TargetCluster.FieldSelector != nil {
		t.Errorf("labels %v, spec %+v; want the fields of the second manager, and no field that the first one removed", got.Labels, got.Spec)
	}
}

func testWatch(t *testing.T, api client.WithWatch) {
	watcher, err := api.Watch(t.Context(), &searchv1alpha1.ResourceRegistryList{}, client.MatchingFields{"metadata.name": "r1"})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	create(t, api, newRegistry("other", "Pod"))
	registry := create(t, api, newRegistry("r1", "Pod"))
	if err := api.Delete(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	var events []watch.EventType
	for event := range watcher.ResultChan() {
		if event.Type == watch.Modified {
			continue // the server may write the status
		}
		events = append(events, event.Type)
		if event.Type == watch.Deleted {
			break
		}
	}
	if diff := cmp.Diff([]watch.EventType{watch.Added, watch.Deleted}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func testFieldSelector(t *testing.T, api client.WithWatch) {
	create(t, api, newRegistry("r1", "Pod"))
	create(t, api, newRegistry("r2", "Pod"))
	list := &searchv1alpha1.ResourceRegistryList{}
	if err := api.List(t.Context(), list, client.MatchingFields{"metadata.name": "r2"}); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Name != "r2" {
		t.Errorf("got %d registries, want r2", len(list.Items))
	}
}

// warnings records the warnings of responses.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) HandleWarningHeader(_ int, _, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, message)
}

func testWarning(t *testing.T, config *rest.Config) {
	recorded := &warnings{}
	config = rest.CopyConfig(config)
	config.WarningHandler = recorded
	registry := newRegistry("r1", "Event")
	registry.Spec.TargetCluster.ClusterNames = nil
	create(t, newClient(t, config), registry)
	if text := strings.Join(recorded.list, "\n"); !strings.Contains(text, "spec.resourceSelectors[0]: caches each Event of every cluster") {
		t.Errorf("the warnings are %q", text)
	}
}

func testStorageKey(t *testing.T, api client.WithWatch, storage *etcd.Server) {
	create(t, api, newRegistry("r1", "Pod"))
	stored, err := storage.Client().Get(t.Context(), "/registry/search.karmada.io/resourceRegistries/r1")
	if err != nil || stored.Count != 1 {
		t.Fatalf("%d keys, %v; want one", stored.Count, err)
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(stored.Kvs[0].Value, &kind); err != nil || kind.Kind != "ResourceRegistry" || kind.APIVersion != "search.karmada.io/v1alpha1" {
		t.Errorf("the stored kind is %+v, %v", kind, err)
	}
}

func testTable(t *testing.T, config *rest.Config, api client.WithWatch) {
	create(t, api, newRegistry("r1", "Pod"))
	raw := send(t, config, "/apis/search.karmada.io/v1alpha1/resourceregistries", http.StatusOK, "application/json;as=Table;v=v1;g=meta.k8s.io")
	table := &metav1.Table{}
	if err := json.Unmarshal(raw, table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Created At"}, columns); diff != "" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "r1" {
		t.Errorf("rows %v; columns (-want +got):\n%s", table.Rows, diff)
	}
}

// send sends a GET request and returns the body of the response.
func send(t *testing.T, config *rest.Config, path string, wantCode int, accept string) []byte {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	discoveryClient, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	raw, _ := discoveryClient.RESTClient().Get().RequestURI(path).SetHeader("Accept", accept).Do(t.Context()).StatusCode(&code).Raw()
	if code != wantCode {
		t.Fatalf("GET %s: code %d, want %d: %s", path, code, wantCode, raw)
	}
	return raw
}

func testDiscovery(t *testing.T, config *rest.Config) {
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := api.ServerResourcesForGroupVersion(searchv1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, resource := range list.APIResources {
		got[resource.Name] = strings.Join([]string{resource.Kind, resource.SingularName, strings.Join(resource.Verbs, ",")}, " ")
		if resource.Namespaced {
			t.Errorf("%s is namespaced", resource.Name)
		}
	}
	want := map[string]string{
		"resourceregistries":        "ResourceRegistry resourceregistry create,delete,deletecollection,get,list,patch,update,watch",
		"resourceregistries/status": "ResourceRegistry  get,patch,update",
		"search":                    "Search search get",
		"proxying":                  "Proxying proxying create,delete,get,patch,update",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

func testUnknownSearch(t *testing.T, config *rest.Config) {
	raw := send(t, config, "/apis/search.karmada.io/v1alpha1/search/caches/api/v1/pods", http.StatusNotFound, "application/json")
	if !strings.Contains(string(raw), "use cache, opensearch, query") {
		t.Errorf("the response is %s", raw)
	}
	if raw := send(t, config, "/apis/search.karmada.io/v1alpha1/search/opensearch/api/v1/pods", http.StatusOK, "application/json"); len(raw) > 0 {
		t.Errorf("opensearch answers %s", raw)
	}
}
