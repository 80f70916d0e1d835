package builtin_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
)

// fixture is a file of testdata: test objects of one kind, and the expected answers.
type fixture struct {
	// Desired is the template.
	Desired map[string]any `json:"desired"`
	// Observed are the member objects, by the name of the cluster.
	Observed map[string]map[string]any `json:"observed"`
	Cases    []fixtureCase             `json:"cases"`
}

// fixtureCase is one question to the rules of a kind, with the expected answer.
type fixtureCase struct {
	// Name is a sentence.
	Name      string                              `json:"name"`
	Operation configv1alpha1.InterpreterOperation `json:"operation"`
	// Desired is a merge patch (RFC 7386) for the template.
	Desired json.RawMessage `json:"desired"`
	// Cluster selects the member object. The default is the first cluster in alphabetical order.
	Cluster string `json:"cluster"`
	// Observed is a merge patch for the selected member object.
	Observed json.RawMessage `json:"observed"`
	// Items are the items of AggregateStatus. The default are the statuses that InterpretStatus
	// collects from all member objects. null means no items.
	Items json.RawMessage `json:"items"`
	// Replicas is the number for ReviseReplica.
	Replicas int64 `json:"replicas"`
	// Want is the expected answer. For InterpretReplica it is {replicas, requirements}. For
	// ReviseReplica and Retain it is the merge patch that changes the template to the answer. For
	// AggregateStatus it is the status of the answer; the rest of the template must not change. For
	// InterpretDependency it is a list of the form "v1 Secret namespace/name".
	Want json.RawMessage `json:"want"`
	// Error is a part of the expected error.
	Error string `json:"error"`
}

// shippedKind is a shipped kind with its test objects and its rules.
type shippedKind struct {
	builtin.Kind
	fixture fixture
	rules   interpreter.Rules
}

// shippedKinds returns all shipped kinds. Their scripts read the given clock.
func shippedKinds(t testing.TB, clock *clock) []shippedKind {
	t.Helper()
	kinds, err := builtin.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	engine := newEngine(t, clock)
	list := make([]shippedKind, 0, len(kinds))
	for _, kind := range kinds {
		scripts := interpreter.MergeCustomizations([]*configv1alpha1.ResourceInterpreterCustomization{kind.Customization})
		list = append(list, shippedKind{Kind: kind, fixture: mustReadFixture(t, kind.File), rules: engine.Rules(scripts[kind.Target()])})
	}
	return list
}

func mustReadFixture(t testing.TB, file string) fixture {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatalf("every kind needs test objects: %v", err)
	}
	var read fixture
	if err := yaml.UnmarshalStrict(text, &read); err != nil {
		t.Fatalf("reading the test objects %s: %v", file, err)
	}
	// sigs.k8s.io/yaml decodes numbers to float64, and objects of Kubernetes contain int64.
	read.Desired = normalize(t, read.Desired).(map[string]any)
	for cluster, object := range read.Observed {
		read.Observed[cluster] = normalize(t, object).(map[string]any)
	}
	return read
}

// normalize returns the value as it is after JSON encoding and decoding.
func normalize(t testing.TB, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text)
}

// template returns the template of a case.
func (f fixture) template(t testing.TB, c fixtureCase) *unstructured.Unstructured {
	t.Helper()
	return mergePatch(t, f.Desired, c.Desired)
}

// memberObject returns the member object of a case.
func (f fixture) memberObject(t testing.TB, c fixtureCase) *unstructured.Unstructured {
	t.Helper()
	cluster := c.Cluster
	if cluster == "" {
		cluster = f.clusters()[0]
	}
	if f.Observed[cluster] == nil {
		t.Fatalf("there is no observed object of cluster %q", cluster)
	}
	return mergePatch(t, f.Observed[cluster], c.Observed)
}

func (f fixture) clusters() []string { return slices.Sorted(maps.Keys(f.Observed)) }

// memberObjects returns the member objects in the order of their clusters.
func (f fixture) memberObjects() []map[string]any {
	var objects []map[string]any
	for _, cluster := range f.clusters() {
		objects = append(objects, f.Observed[cluster])
	}
	return objects
}

// items returns the items of a case.
func (k shippedKind) items(t testing.TB, c fixtureCase) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	if c.Items != nil {
		var items []workv1alpha2.AggregatedStatusItem
		if err := json.Unmarshal(c.Items, &items); err != nil {
			t.Fatalf("reading the items: %v", err)
		}
		return items
	}
	reflect := k.rules.ReflectStatus
	if reflect == nil {
		reflect = interpreter.ReflectWholeStatus
	}
	var items []workv1alpha2.AggregatedStatusItem
	for _, cluster := range k.fixture.clusters() {
		status, err := reflect(t.Context(), &unstructured.Unstructured{Object: k.fixture.Observed[cluster]})
		if err != nil {
			t.Fatalf("collecting the status from %s: %v", cluster, err)
		}
		items = append(items, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Status: status, Applied: true})
	}
	return items
}

// mergePatch returns a copy of the object, changed by a merge patch. An empty patch changes nothing.
func mergePatch(t testing.TB, object map[string]any, patch json.RawMessage) *unstructured.Unstructured {
	t.Helper()
	changed := runtime.DeepCopyJSON(object)
	if len(patch) > 0 {
		changes, ok := decode(t, patch).(map[string]any)
		if !ok {
			t.Fatalf("the patch %s is not an object", patch)
		}
		merge(changed, changes)
	}
	return &unstructured.Unstructured{Object: changed}
}

func merge(object, changes map[string]any) {
	for key, change := range changes {
		fields, isObject := change.(map[string]any)
		switch old, wasObject := object[key].(map[string]any); {
		case change == nil:
			delete(object, key)
		case isObject && wasObject:
			merge(old, fields)
		default:
			object[key] = change
		}
	}
}
