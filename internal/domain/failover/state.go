package failover

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/jsonpath"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Collect reads what is carried over from a cluster out of the status that it
// reported last: for each rule the text at its path, by the name of its label. What
// is missing, or cannot be the value of a label, is an error: the workload would
// start from nothing in its next cluster, unnoticed.
func Collect(rules []policyv1alpha1.StatePreservationRule, items []workv1alpha2.AggregatedStatusItem, cluster string) (map[string]string, error) {
	status, err := statusIn(items, cluster)
	if err != nil {
		return nil, err
	}
	state := make(map[string]string, len(rules))
	for _, rule := range rules {
		text, err := Read(rule.JSONPath, status)
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

func statusIn(items []workv1alpha2.AggregatedStatusItem, cluster string) (any, error) {
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
		return status, nil
	}
	return nil, fmt.Errorf("cluster %s has not reported a status of the workload, whose state is to be preserved", cluster)
}

// CheckPath tells why a path can be read in no status at all.
func CheckPath(path string) error {
	_, err := compile(path)
	return err
}

func compile(path string) (*jsonpath.JSONPath, error) {
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

// Read finds a text by a path in the notation of kubectl, such as {.checkpoint.id}
// or, without braces, .checkpoint.id. A path that leads to nothing is an error.
func Read(path string, in any) (text string, err error) {
	// Paths and statuses are made by users, and the library is built on reflection:
	// whatever it stumbles over must not end the process.
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("the jsonPath %q does not fit what it is applied to", path)
		}
	}()
	compiled, err := compile(path)
	if err != nil {
		return "", err
	}
	var found bytes.Buffer
	if err := compiled.Execute(&found, in); err != nil {
		return "", fmt.Errorf("the jsonPath %q: %w", path, err)
	}
	return found.String(), nil
}
