package failover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// CollectState reads the state to preserve from the last status that the given cluster reported. The
// result maps each rule's label name to the text at the rule's path. CollectState returns an error if a
// text is missing or is not a valid label value, because otherwise the workload would start without its
// state in the next cluster.
func CollectState(rules []policyv1alpha1.StatePreservationRule, items []workv1alpha2.AggregatedStatusItem,
	cluster string) (map[string]string, error) {
	status, err := reportedStatus(items, cluster)
	if err != nil {
		return nil, err
	}
	state := make(map[string]string, len(rules))
	for _, rule := range rules {
		text, err := ReadPath(rule.JSONPath, status)
		if err != nil {
			return nil, fmt.Errorf("preserving the label %s from cluster %s: %w", rule.AliasLabelName, cluster, err)
		}
		if problems := validation.IsValidLabelValue(text); len(problems) > 0 {
			return nil, fmt.Errorf("preserving the label %s from cluster %s: it cannot have the value %q: %s; let the jsonPath of the rule select a shorter text",
				rule.AliasLabelName, cluster, text, strings.Join(problems, ", "))
		}
		state[rule.AliasLabelName] = text
	}
	return state, nil
}

func reportedStatus(items []workv1alpha2.AggregatedStatusItem, cluster string) (any, error) {
	for i := range items {
		if items[i].ClusterName != cluster {
			continue
		}
		if items[i].Status == nil || len(items[i].Status.Raw) == 0 {
			break
		}
		var status any
		if err := json.Unmarshal(items[i].Status.Raw, &status); err != nil {
			return nil, fmt.Errorf("reading the status in cluster %s: %w", cluster, err)
		}
		if status == nil {
			break
		}
		return status, nil
	}
	return nil, fmt.Errorf("cluster %s has not reported a status of the workload, whose state is to be preserved", cluster)
}

// ValidateJSONPath returns an error if path is not a valid JSONPath.
func ValidateJSONPath(path string) error {
	_, err := compilePath(path)
	return err
}

func compilePath(path string) (*jsonpath.JSONPath, error) {
	expression := path
	if !strings.Contains(path, "{") {
		expression = "{" + path + "}"
		if !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "$") {
			expression = "{." + path + "}"
		}
	}
	compiled := jsonpath.New("state")
	if err := compiled.Parse(expression); err != nil {
		return nil, fmt.Errorf("the jsonPath %q: %w", path, err)
	}
	return compiled, nil
}

func isNull(value reflect.Value) bool {
	return !value.IsValid() || value.Kind() == reflect.Interface && value.IsNil()
}

// ReadPath returns the text at a path in the notation of kubectl, such as {.checkpoint.id} or,
// without braces, .checkpoint.id. It returns an error if the path leads to no value or to null.
func ReadPath(path string, in any) (text string, err error) {
	// A panic in the library must not end the process. The library uses reflection on paths and
	// statuses that users write.
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("the jsonPath %q does not fit the status", path)
		}
	}()
	compiled, err := compilePath(path)
	if err != nil {
		return "", err
	}
	results, err := compiled.FindResults(in)
	if err != nil {
		return "", fmt.Errorf("the jsonPath %q: %w", path, err)
	}
	var found bytes.Buffer
	for _, values := range results {
		if len(values) == 0 || slices.ContainsFunc(values, isNull) {
			return "", fmt.Errorf("the jsonPath %q selects nothing", path)
		}
		if err := compiled.PrintResults(&found, values); err != nil {
			return "", fmt.Errorf("the jsonPath %q: %w", path, err)
		}
	}
	return found.String(), nil
}
