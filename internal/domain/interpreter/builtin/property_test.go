package builtin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// kindsWithRules returns the kinds with rules in a fixed order, so that a fuzz test can choose a
// kind by its index.
func kindsWithRules() []schema.GroupVersionKind {
	var list []schema.GroupVersionKind
	for gvk := range newSource().(table) {
		list = append(list, gvk)
	}
	slices.SortFunc(list, func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
	})
	return list
}

// workloadStatus generates a status with the counters of all workloads and of PodDisruptionBudgets.
func workloadStatus(t *rapid.T) map[string]any {
	status := map[string]any{}
	for _, field := range []string{
		"replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "currentReplicas", "desiredReplicas",
		"numberReady", "currentNumberScheduled", "desiredNumberScheduled", "currentHealthy", "disruptionsAllowed",
		"generation", "observedGeneration", "resourceTemplateGeneration",
	} {
		if rapid.Bool().Draw(t, "has "+field) {
			status[field] = rapid.Int64Range(0, 1<<31-1).Draw(t, field)
		}
	}
	status["phase"] = rapid.SampledFrom([]string{"Pending", "Bound", "Available", "Running", "Failed", "Lost"}).Draw(t, "phase")
	status["loadBalancer"] = map[string]any{"ingress": []any{map[string]any{
		"ip":       rapid.SampledFrom([]string{"", "1.1.1.1", "2.2.2.2"}).Draw(t, "ip"),
		"hostname": rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "hostname"),
	}}}
	return status
}

// generateConditions generates conditions of Deployments and Jobs.
func generateConditions(t *rapid.T) []any {
	var list []any
	for _, kind := range []string{"Available", "Progressing", "ReplicaFailure", "PodFailure", "Failed"} {
		if rapid.Bool().Draw(t, "has "+kind) {
			list = append(list, map[string]any{
				"type": kind, "status": rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, kind),
				"reason": rapid.SampledFrom([]string{"NewReplicaSetAvailable", "ProgressDeadlineExceeded", "Other"}).Draw(t, "reason of "+kind),
			})
		}
	}
	return list
}

func generateItems(t *rapid.T) []workv1alpha2.AggregatedStatusItem {
	var list []workv1alpha2.AggregatedStatusItem
	for i := range rapid.IntRange(0, 4).Draw(t, "clusters") {
		item := workv1alpha2.AggregatedStatusItem{
			ClusterName:    fmt.Sprint("m", i),
			Applied:        rapid.Bool().Draw(t, "applied"),
			AppliedMessage: rapid.SampledFrom([]string{"", "rejected", "not ready"}).Draw(t, "message"),
			Health: rapid.SampledFrom([]workv1alpha2.ResourceHealth{
				workv1alpha2.ResourceHealthy, workv1alpha2.ResourceUnhealthy, workv1alpha2.ResourceUnknown,
			}).Draw(t, "health"),
		}
		if rapid.Bool().Draw(t, "reports") {
			status := workloadStatus(t)
			if conditions := generateConditions(t); len(conditions) > 0 {
				status["conditions"] = conditions
			}
			raw, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			item.Status = &runtime.RawExtension{Raw: raw}
		}
		list = append(list, item)
	}
	return list
}

func TestAggregateProperties(t *testing.T) {
	// These kinds have lists in their status that depend on the order of the items.
	ordered := map[string]bool{"CronJob": true, "Pod": true, "PersistentVolumeClaim": true}
	for _, gvk := range kindsWithRules() {
		rule := newSource().Rules(gvk).AggregateStatus
		if rule == nil {
			continue
		}
		t.Run(gvk.Kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				template := &unstructured.Unstructured{Object: map[string]any{
					"metadata": map[string]any{"generation": rapid.Int64Range(0, 3).Draw(t, "generation")},
					"spec":     map[string]any{"type": "LoadBalancer"},
				}}
				template.SetGroupVersionKind(gvk)
				if rapid.Bool().Draw(t, "has status") {
					template.Object["status"] = workloadStatus(t)
				}
				items := generateItems(t)
				templateBefore, itemsBefore := template.DeepCopy(), cloneItems(items)

				once, err := rule(t.Context(), template, items)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(templateBefore, template); diff != "" {
					t.Fatalf("the template was modified:\n%s", diff)
				}
				if diff := cmp.Diff(itemsBefore, items); diff != "" {
					t.Fatalf("the items were modified:\n%s", diff)
				}
				twice, err := rule(t.Context(), once, items)
				if err != nil || twice != once {
					t.Fatalf("a second aggregation changes the status (error %v):\n%s", err, cmp.Diff(once, twice))
				}
				if ordered[gvk.Kind] {
					return
				}
				shuffled, err := rule(t.Context(), template, rapid.Permutation(items).Draw(t, "shuffled"))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(once, shuffled); diff != "" {
					t.Fatalf("the status depends on the order of the clusters:\n%s", diff)
				}
			})
		})
	}
}

func cloneItems(items []workv1alpha2.AggregatedStatusItem) []workv1alpha2.AggregatedStatusItem {
	var clones []workv1alpha2.AggregatedStatusItem
	for i := range items {
		clones = append(clones, *items[i].DeepCopy())
	}
	return clones
}

// FuzzRules calls every rule with arbitrary objects. A rule may return an error, but must not panic
// or modify its arguments.
func FuzzRules(f *testing.F) {
	seeds := []string{
		`{}`, `null`, `[]`, `"text"`, `{"status":null}`, `{"status":[]}`, `{"replicas":1e400}`, `{"replicas":1.5,"phase":1}`,
		`{"spec":{"replicas":1,"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"x"}}}]}}},"status":{"replicas":1}}`,
		`{"spec":{"replicas":9223372036854775807,"type":"LoadBalancer","tls":[null,{"secretName":1}],"volumeClaimTemplates":[1]},"status":{"loadBalancer":{"ingress":[{"ip":"1"}]}}}`,
		`{"metadata":{"labels":{"resourcetemplate.karmada.io/retain-replicas":"true"},"annotations":1,"generation":"x"},"spec":{"replicas":null}}`,
		`{"spec":{"containers":[null,{"name":1},{"name":"a","volumeMounts":{}}],"volumes":[{}]},"secrets":[1,{"name":"a"}],"type":"kubernetes.io/service-account-token","data":{}}`,
		`{"conditions":[{"type":"Failed","status":"True"}],"active":-1,"startTime":"x","containerStatuses":[{"state":{"running":{}}}],"disruptedPods":{"a":null}}`,
		`{"status":{"conditions":[{"type":"FailureTarget","status":"True"}],"active":2147483648,"observedGeneration":-9223372036854775808}}`,
	}
	for i := range kindsWithRules() {
		for j, seed := range seeds {
			f.Add(i, []byte(seed), []byte(seeds[(i+j)%len(seeds)]))
		}
	}
	f.Fuzz(func(t *testing.T, kind int, first, second []byte) {
		all := kindsWithRules()
		gvk := all[int(uint(kind)%uint(len(all)))]
		template, other := fuzzObject(first, gvk), fuzzObject(second, gvk)
		templateBefore, otherBefore := template.DeepCopy(), other.DeepCopy()
		callAllRules(t, gvk, template, other, second)
		if diff := cmp.Diff(templateBefore, template); diff != "" {
			t.Errorf("the template was modified:\n%s", diff)
		}
		if diff := cmp.Diff(otherBefore, other); diff != "" {
			t.Errorf("the member object was modified:\n%s", diff)
		}
	})
}

// fuzzObject decodes an object, or returns {} for invalid data.
func fuzzObject(raw []byte, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		object = map[string]any{}
	}
	result := &unstructured.Unstructured{Object: object}
	result.SetGroupVersionKind(gvk)
	return result
}

func callAllRules(t *testing.T, gvk schema.GroupVersionKind, template, other *unstructured.Unstructured, status []byte) {
	rules, ctx := newSource().Rules(gvk), t.Context()
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "m1", Status: &runtime.RawExtension{Raw: status}}, {ClusterName: "m2"},
	}
	if rules.Replicas != nil {
		_, _, _ = rules.Replicas(ctx, template)
	}
	if rules.ReviseReplicas != nil {
		_, _ = rules.ReviseReplicas(ctx, template, 3)
	}
	if rules.Retain != nil {
		if got, err := rules.Retain(ctx, template, other); err == nil && got == nil {
			t.Error("retaining answers with neither an object nor an error")
		}
	}
	if rules.AggregateStatus != nil {
		if got, err := rules.AggregateStatus(ctx, template, items); err == nil && got == nil {
			t.Error("aggregating answers with neither an object nor an error")
		}
	}
	if rules.ReflectStatus != nil {
		_, _ = rules.ReflectStatus(ctx, other)
	}
	if rules.IsHealthy != nil {
		if healthy, err := rules.IsHealthy(ctx, other); err != nil && healthy {
			t.Error("healthy in spite of an error")
		}
	}
	if rules.Dependencies != nil {
		_, _ = rules.Dependencies(ctx, template)
	}
}
