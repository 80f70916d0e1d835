package builtin

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func now() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) }

func newSource() interpreter.Source { return New(Options{Now: now}) }

// rulesFor returns the builtin rules for an object.
func rulesFor(object *unstructured.Unstructured) interpreter.Rules {
	return newSource().Rules(object.GroupVersionKind())
}

// parseObject decodes a YAML object.
func parseObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: parseMap(t, text)}
}

// parseMap decodes YAML with integers as int64, in the same way as objects are decoded.
func parseMap(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("reading %q: %v", text, err)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatalf("reading %q: %v", text, err)
	}
	return object
}

// noStatus represents a cluster without a status.
const noStatus = ""

// newItems returns one item for each status. The clusters of the items are m1, m2 and so on.
func newItems(t testing.TB, statuses ...string) []workv1alpha2.AggregatedStatusItem {
	t.Helper()
	var list []workv1alpha2.AggregatedStatusItem
	for i, status := range statuses {
		item := workv1alpha2.AggregatedStatusItem{ClusterName: "m" + string(rune('1'+i)), Applied: true}
		if status != noStatus {
			raw, err := yaml.YAMLToJSON([]byte(status))
			if err != nil {
				t.Fatalf("reading %q: %v", status, err)
			}
			item.Status = &runtime.RawExtension{Raw: raw}
		}
		list = append(list, item)
	}
	return list
}

// aggregateStatus returns the aggregated status of a template. It fails the test if the rule is not
// idempotent or modified an argument.
func aggregateStatus(t testing.TB, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) map[string]any {
	t.Helper()
	before := template.DeepCopy()
	rule := rulesFor(template).AggregateStatus
	got, err := rule(t.Context(), template, items)
	if err != nil {
		t.Fatalf("aggregating: %v", err)
	}
	again, err := rule(t.Context(), got, items)
	if err != nil || again != got {
		t.Errorf("a second aggregation returns %v (error %v), want %v", again.Object["status"], err, got.Object["status"])
	}
	if diff := cmp.Diff(before, template); diff != "" {
		t.Errorf("the template was modified (-before +after):\n%s", diff)
	}
	status, _ := got.Object["status"].(map[string]any)
	return status
}

func TestOperationsByKind(t *testing.T) {
	tests := map[schema.GroupVersionKind]string{
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                           "replicas revise retain aggregate status healthy dependencies",
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:                           "replicas revise aggregate status healthy dependencies",
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}:                          "replicas revise aggregate status healthy dependencies",
		{Group: "apps", Version: "v1", Kind: "DaemonSet"}:                            "aggregate status healthy dependencies",
		{Group: "batch", Version: "v1", Kind: "Job"}:                                 "replicas revise retain aggregate status dependencies",
		{Group: "batch", Version: "v1", Kind: "CronJob"}:                             "aggregate dependencies",
		{Version: "v1", Kind: "Pod"}:                                                 "replicas retain aggregate healthy dependencies",
		{Version: "v1", Kind: "Service"}:                                             "retain aggregate status healthy",
		{Version: "v1", Kind: "ServiceAccount"}:                                      "retain",
		{Version: "v1", Kind: "Secret"}:                                              "retain",
		{Version: "v1", Kind: "PersistentVolume"}:                                    "retain aggregate",
		{Version: "v1", Kind: "PersistentVolumeClaim"}:                               "retain aggregate healthy",
		{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}:                 "retain aggregate healthy dependencies",
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}:     "retain",
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:                "aggregate status healthy",
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}:       "aggregate status",
		{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ServiceImport"}: "dependencies",
		// Other versions have no rules.
		{Group: "apps", Version: "v1beta1", Kind: "Deployment"}:                "",
		{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}: "",
		{Group: "networking.k8s.io", Version: "v1beta1", Kind: "Ingress"}:      "",
		{Version: "v1", Kind: "ConfigMap"}:                                     "",
	}
	for gvk, want := range tests {
		t.Run(gvk.String(), func(t *testing.T) {
			offered := newSource().Rules(gvk)
			got := ""
			for _, row := range []struct {
				name string
				has  bool
			}{
				{"replicas", offered.Replicas != nil}, {"components", offered.Components != nil},
				{"revise", offered.ReviseReplicas != nil}, {"retain", offered.Retain != nil},
				{"aggregate", offered.AggregateStatus != nil}, {"status", offered.ReflectStatus != nil},
				{"healthy", offered.IsHealthy != nil}, {"dependencies", offered.Dependencies != nil},
			} {
				if row.has && got != "" {
					got += " "
				}
				if row.has {
					got += row.name
				}
			}
			if got != want {
				t.Errorf("operations: %q, want %q", got, want)
			}
		})
	}
}
