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

type aggregateRule = func(context.Context, *unstructured.Unstructured, []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)

// memberStatus reads the status that one cluster reports as a T, which names
// only the fields that count. It reports false when there is none yet.
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

// eachStatus calls visit for every cluster that reports a status, in the order
// of items.
func eachStatus[T any](items []workv1alpha2.AggregatedStatusItem, visit func(cluster string, status *T)) error {
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

// replaceStatus returns template with a new status in place of the old one, and
// template itself when both mean the same. The comparison is one of API types,
// in which a zero and an absent field are equal, so that defaults which the API
// server fills in do not look like differences.
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

// sumWorkload is the rule of the workloads of apps/v1: the counters are summed
// and observedGeneration follows the template; other fields of the status stay.
// A template that a cluster could not be given is not observed: its
// observedGeneration goes back, for it may have been complete in fewer clusters.
func sumWorkload(counters []string) aggregateRule {
	return func(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
		totals := make(map[string]int64, len(counters)+1)
		observed := true // by every cluster, and so without clusters too
		for i := range items {
			current, err := addWorkload(totals, counters, &items[i], template.GetGeneration())
			if err != nil {
				return nil, err
			}
			observed = observed && current
		}
		generation, err := observedOf(template, items, observed)
		if err != nil {
			return nil, err
		}
		totals[observedGeneration] = generation
		return setCounters(template, with(counters, observedGeneration), totals)
	}
}

// observedOf returns the generation of a template that counts as observed.
func observedOf(template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem, byAll bool) (int64, error) {
	stored, err := count(template.Object, "status", observedGeneration)
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading the status of the template: %w", err)
	case slices.ContainsFunc(items, isUndelivered):
		return max(0, min(stored, template.GetGeneration()-1)), nil
	case byAll:
		return template.GetGeneration(), nil
	default:
		return stored, nil
	}
}

// isUndelivered reports whether a cluster does not have the template for a known cause.
func isUndelivered(item workv1alpha2.AggregatedStatusItem) bool {
	return !item.Applied && item.AppliedMessage != ""
}

const observedGeneration = "observedGeneration"

// with returns a new list of the fields and one more.
func with(fields []string, more string) []string {
	return append(fields[:len(fields):len(fields)], more)
}

// addWorkload adds what one cluster reports to totals. It returns whether the
// cluster has the given generation of the template and its controller has seen
// it; a cluster that reports nothing has not.
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

// counterReader reads integers of a status and keeps the first error.
type counterReader struct {
	status map[string]any
	err    error
}

func (r *counterReader) read(field string) int64 {
	value, err := count(r.status, field)
	if err != nil && r.err == nil {
		r.err = err
	}
	return value
}

// addCount adds counters that are 32-bit on the wire and stops at their bounds.
func addCount(a, b int64) int64 {
	// a never leaves the bounds, so only b has to be cut to avoid an overflow.
	return int64(int32Of(a + min(max(b, math.MinInt32), math.MaxInt32)))
}

// addInt32 adds and stops at the bounds.
func addInt32(a, b int32) int32 { return int32Of(int64(a) + int64(b)) }

// setCounters returns template with the values at the given fields of its
// status. An absent field is a zero, and a zero is stored as an absent field.
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
