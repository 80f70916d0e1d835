package builtin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// TestAggregationIsIdempotent aggregates the same items into the result of each case at a later time.
func TestAggregationIsIdempotent(t *testing.T) {
	clock := newClock()
	for _, kind := range shippedKinds(t, clock) {
		for _, c := range kind.fixture.Cases {
			if c.Operation != configv1alpha1.InterpreterOperationAggregateStatus || c.Error != "" {
				continue
			}
			items := kind.items(t, c)
			first, err := kind.rules.AggregateStatus(t.Context(), kind.fixture.template(t, c), items)
			if err != nil {
				t.Fatalf("%s, %s: %v", kind.File, c.Name, err)
			}
			clock.time = clock.time.Add(time.Hour)
			second, err := kind.rules.AggregateStatus(t.Context(), first, items)
			if err != nil {
				t.Fatalf("%s, %s: %v", kind.File, c.Name, err)
			}
			if diff := cmp.Diff(first.Object, second.Object, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, %s: a second aggregation differs (-first +second):\n%s", kind.File, c.Name, diff)
			}
			if first != second {
				t.Errorf("%s, %s: the result of a second aggregation is a copy, so its caller writes the status again", kind.File, c.Name)
			}
		}
	}
}

// TestManyClustersAreAggregated aggregates the statuses of 600 clusters within the default limits of
// scripts.
func TestManyClustersAreAggregated(t *testing.T) {
	for _, kind := range shippedKinds(t, newClock()) {
		if kind.rules.AggregateStatus == nil {
			continue
		}
		few := kind.items(t, fixtureCase{})
		items := make([]workv1alpha2.AggregatedStatusItem, 600)
		for i := range items {
			items[i] = few[i%len(few)]
			items[i].ClusterName = fmt.Sprintf("cluster-of-a-region-with-a-long-name-%d", i)
		}
		template := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(kind.fixture.Desired)}
		aggregated, err := kind.rules.AggregateStatus(t.Context(), template, items)
		if err != nil {
			t.Errorf("%s: %v", kind.File, err)
			continue
		}
		conditions, _, err := unstructured.NestedSlice(aggregated.Object, "status", "conditions")
		if err != nil {
			t.Errorf("%s: %v", kind.File, err)
		}
		for _, condition := range conditions {
			message, _, _ := unstructured.NestedString(condition.(map[string]any), "message")
			if len(message) > 32768 {
				t.Errorf("%s: the message of a condition has %d bytes, and the API server accepts 32768", kind.File, len(message))
			}
		}
	}
}

// TestRevisedReplicasAreInterpreted sets numbers of replicas, and reads them.
func TestRevisedReplicasAreInterpreted(t *testing.T) {
	for _, kind := range shippedKinds(t, newClock()) {
		if kind.rules.ReviseReplicas == nil || kind.rules.Replicas == nil {
			continue
		}
		for _, want := range []int32{1, 2, 3, 10, 1001} {
			template := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(kind.fixture.Desired)}
			revised, err := kind.rules.ReviseReplicas(t.Context(), template, int64(want))
			if err != nil {
				t.Fatalf("%s: %v", kind.File, err)
			}
			got, _, err := kind.rules.Replicas(t.Context(), revised)
			if err != nil || got != want {
				t.Errorf("%s: after setting %d replicas, the number is %d (error: %v)", kind.File, want, got, err)
			}
		}
	}
}

// TestMissingStatusIsNoError requires that no rule fails because the controller of a kind has not
// written a valid status, and that an object without a status is not healthy.
func TestMissingStatusIsNoError(t *testing.T) {
	statuses := map[string]any{
		"a missing status": nil, "an empty status": map[string]any{}, "a text": "text", "a number": int64(7),
		"a list": []any{int64(7)}, "a truth value": true,
	}
	for _, kind := range shippedKinds(t, newClock()) {
		for name, status := range statuses {
			t.Run(strings.TrimSuffix(kind.File, ".yaml")+"/"+name, func(t *testing.T) {
				memberObject := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(kind.fixture.Observed[kind.fixture.clusters()[0]])}
				delete(memberObject.Object, "status")
				if status != nil {
					memberObject.Object["status"] = status
				}
				checkMissingStatus(t, kind, memberObject, status)
			})
		}
	}
}

func checkMissingStatus(t *testing.T, kind shippedKind, memberObject *unstructured.Unstructured, status any) {
	if rule := kind.rules.IsHealthy; rule != nil {
		// The rule for an empty status depends on the kind.
		_, isObject := status.(map[string]any)
		if healthy, err := rule(t.Context(), memberObject); healthy && !isObject || err != nil {
			t.Errorf("the object is healthy: %t, error: %v", healthy, err)
		}
	}
	if rule := kind.rules.ReflectStatus; rule != nil {
		if _, err := rule(t.Context(), memberObject); err != nil {
			t.Errorf("InterpretStatus: %v", err)
		}
	}
	if rule := kind.rules.Retain; rule != nil {
		template := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(kind.fixture.Desired)}
		if _, err := rule(t.Context(), template, memberObject); err != nil {
			t.Errorf("Retain: %v", err)
		}
	}
	if rule := kind.rules.AggregateStatus; rule != nil {
		raw, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		template := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(kind.fixture.Desired)}
		template.Object["status"] = status
		for _, items := range [][]workv1alpha2.AggregatedStatusItem{
			{{ClusterName: "a", Status: &runtime.RawExtension{Raw: raw}}},
			{{ClusterName: "a", Status: &runtime.RawExtension{Raw: raw}}, {ClusterName: "b"}},
			{},
			nil,
		} {
			if _, err := rule(t.Context(), template, items); err != nil {
				t.Errorf("AggregateStatus of %d items: %v", len(items), err)
			}
		}
	}
}

// TestWrongTypesDoNotPanic replaces each value of the test objects by a value of another type. Each
// rule may answer or return an error.
func TestWrongTypesDoNotPanic(t *testing.T) {
	for _, kind := range shippedKinds(t, newClock()) {
		cases := map[configv1alpha1.InterpreterOperation]fixtureCase{}
		for _, c := range kind.fixture.Cases {
			if _, known := cases[c.Operation]; !known {
				cases[c.Operation] = c
			}
		}
		t.Run(strings.TrimSuffix(kind.File, ".yaml"), func(t *testing.T) {
			for _, operation := range slices.Sorted(maps.Keys(cases)) {
				checkWrongTypes(t, kind, cases[operation])
			}
		})
	}
}

// checkWrongTypes asks the question of a case for changed arguments.
func checkWrongTypes(t *testing.T, kind shippedKind, c fixtureCase) {
	arguments := argumentsOf(t, kind, c)
	c.Desired, c.Observed, c.Cluster, c.Error = nil, nil, "", ""
	for _, wrong := range []any{nil, "text", int64(7), []any{int64(7)}, map[string]any{"x": int64(7)}} {
		forEachReplacement(arguments, wrong, func(path string) {
			defer func() {
				if cause := recover(); cause != nil {
					t.Errorf("%s with %v at %s: %v", c.Operation, wrong, path, cause)
				}
			}()
			changed := kind
			if template, ok := arguments["desired"].(map[string]any); ok {
				changed.fixture.Desired = template
			}
			if memberObject, ok := arguments["observed"].(map[string]any); ok {
				changed.fixture.Observed = map[string]map[string]any{"a": memberObject}
			}
			c.Items, _ = json.Marshal(arguments["items"])
			_, _ = changed.answer(t, c)
		})
	}
}

// argumentsOf returns the arguments of a case that its rule reads.
func argumentsOf(t *testing.T, kind shippedKind, c fixtureCase) map[string]any {
	template, memberObject := kind.fixture.template(t, c).Object, kind.fixture.memberObject(t, c).Object
	switch c.Operation {
	case configv1alpha1.InterpreterOperationRetain:
		return map[string]any{"desired": template, "observed": memberObject}
	case configv1alpha1.InterpreterOperationInterpretStatus, configv1alpha1.InterpreterOperationInterpretHealth:
		return map[string]any{"observed": memberObject}
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return map[string]any{"items": normalize(t, kind.items(t, c))}
	default:
		return map[string]any{"desired": template}
	}
}

// forEachReplacement calls visit for each value in the arguments of a rule, while the arguments
// contain wrong instead of the value. The identity of objects and items stays.
func forEachReplacement(arguments map[string]any, wrong any, visit func(path string)) {
	for name, argument := range arguments {
		replaceIn(argument, name, wrong, visit)
	}
}

func replaceIn(container any, path string, wrong any, visit func(path string)) {
	switch container := container.(type) {
	case map[string]any:
		for key, value := range maps.Clone(container) {
			if !isIdentity(key) {
				container[key] = wrong
				visit(path + "." + key)
				container[key] = value
				replaceIn(value, path+"."+key, wrong, visit)
			}
		}
	case []any:
		for i, value := range container {
			if !strings.HasPrefix(path, "items") || strings.Contains(path, ".") {
				container[i] = wrong
				visit(fmt.Sprintf("%s[%d]", path, i))
				container[i] = value
			}
			replaceIn(value, fmt.Sprintf("%s[%d]", path, i), wrong, visit)
		}
	}
}

// isIdentity reports whether a field never has a wrong type, because the API server or the
// components of Karmada write it.
func isIdentity(key string) bool {
	return slices.Contains([]string{"apiVersion", "kind", "metadata", "clusterName", "applied", "appliedMessage", "health"}, key)
}
