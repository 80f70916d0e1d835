package builtin

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

type aggregateRule = func(
	context.Context, *unstructured.Unstructured, []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error)

// memberStatus decodes the item's status into T, which declares only the required fields. found is false
// if the cluster has not reported a status yet.
func memberStatus[T any](item *workv1alpha2.AggregatedStatusItem) (status T, found bool, err error) {
	if item.Status == nil {
		return status, false, nil
	}
	raw := bytes.TrimSpace(item.Status.Raw)
	if len(raw) == 0 || string(raw) == "null" {
		return status, false, nil
	}
	if err := json.Unmarshal(raw, &status); err != nil {
		return status, false, fmt.Errorf("reading the status in cluster %q: %w", item.ClusterName, err)
	}
	return status, true, nil
}

// forEachStatus calls visit for each cluster that has reported a status, in the order of items.
func forEachStatus[T any](items []workv1alpha2.AggregatedStatusItem, visit func(cluster string, status *T)) error {
	for i := range items {
		status, found, err := memberStatus[T](&items[i])
		if err != nil {
			return err
		}
		if found {
			visit(items[i].ClusterName, &status)
		}
	}
	return nil
}

// replaceStatus returns a copy of the template with the given status, or the template itself if the
// status equals the old one. The statuses are compared as API types, in which a missing field equals its
// zero value, so that defaults from the API server are no difference.
func replaceStatus[T any](template *unstructured.Unstructured, old, status *T) (*unstructured.Unstructured, error) {
	if equality.Semantic.DeepEqual(old, status) {
		return template, nil
	}
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	changed := template.DeepCopy()
	changed.Object["status"] = encoded
	return changed, nil
}

// aggregateWorkload returns the rule that aggregates the status of apps/v1 workloads. The rule sums the
// counters, sets observedGeneration if all clusters have observed the template's generation, and keeps
// the other status fields. If the template could not be applied to a cluster, the generation does not
// count as observed, and the rule decreases observedGeneration if it already equals the generation.
func aggregateWorkload(counters []string) aggregateRule {
	return func(
		_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
	) (*unstructured.Unstructured, error) {
		totals := make(map[string]int64, len(counters)+1)
		allObserved := true // whether every cluster observed the generation; true without clusters
		for i := range items {
			current, err := addWorkload(totals, counters, &items[i], template.GetGeneration())
			if err != nil {
				return nil, err
			}
			allObserved = allObserved && current
		}
		generation, err := observedGenerationOf(template, items, allObserved)
		if err != nil {
			return nil, err
		}
		totals[observedGeneration] = generation
		return setCounters(template, appendField(counters, observedGeneration), totals)
	}
}

// observedGenerationOf returns the observedGeneration to set in the template's status.
func observedGenerationOf(template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem, allObserved bool) (int64, error) {
	stored, err := integerOrZero(template.Object, "status", observedGeneration)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the status of the template: %w", err)
	case slices.ContainsFunc(items, isUndelivered):
		return max(0, min(stored, template.GetGeneration()-1)), nil
	case allObserved:
		return template.GetGeneration(), nil
	default:
		return stored, nil
	}
}

// isUndelivered reports whether the template could not be applied to the item's cluster for a known
// cause.
func isUndelivered(item workv1alpha2.AggregatedStatusItem) bool {
	return !item.Applied && item.AppliedMessage != ""
}

const observedGeneration = "observedGeneration"

// appendField returns a new list with one more field.
func appendField(fields []string, field string) []string {
	return append(fields[:len(fields):len(fields)], field)
}

// addWorkload adds a cluster's counters to totals. It reports whether the cluster has the template's
// given generation and its controller has observed it, which is false for a cluster without a status.
func addWorkload(totals map[string]int64, counters []string, item *workv1alpha2.AggregatedStatusItem, generation int64) (bool, error) {
	status, found, err := memberStatus[map[string]any](item)
	if err != nil || !found {
		return false, err
	}
	reader := counterReader{status: status}
	for _, counter := range counters {
		totals[counter] = addCount(totals[counter], reader.read(counter))
	}
	current := reader.read(observedGeneration) >= reader.read("generation") &&
		reader.read("resourceTemplateGeneration") >= generation
	if reader.err != nil {
		return false, fmt.Errorf("reading the status in cluster %q: %w", item.ClusterName, reader.err)
	}
	return current, nil
}

// counterReader reads integers from a status and stores the first error.
type counterReader struct {
	status map[string]any
	err    error
}

func (c *counterReader) read(field string) int64 {
	value, err := integerOrZero(c.status, field)
	if err != nil && c.err == nil {
		c.err = err
	}
	return value
}

// addCount adds two counters that are 32-bit integers in the API. The sum saturates at 32 bits.
func addCount(a, b int64) int64 {
	// a is always in range, so only b has to be limited to avoid an overflow.
	return int64(saturateInt32(a + min(max(b, math.MinInt32), math.MaxInt32)))
}

// addInt32 adds two values. The sum saturates instead of overflowing.
func addInt32(a, b int32) int32 { return saturateInt32(int64(a) + int64(b)) }

// setCounters returns the template with the values in the given status fields. A zero value removes the
// field, because both have the same meaning.
func setCounters(template *unstructured.Unstructured, fields []string, values map[string]int64) (*unstructured.Unstructured, error) {
	old, err := nested[map[string]any](template.Object, "status")
	if err != nil {
		return nil, err
	}
	reader := counterReader{status: old}
	same := true
	for _, field := range fields {
		same = reader.read(field) == values[field] && same
	}
	if reader.err != nil {
		return nil, fmt.Errorf("reading the status of the template: %w", reader.err)
	}
	if same {
		return template, nil
	}
	changed := template.DeepCopy()
	status, _ := changed.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		changed.Object["status"] = status
	}
	for _, field := range fields {
		if values[field] == 0 {
			delete(status, field)
			continue
		}
		status[field] = values[field]
	}
	return changed, nil
}
