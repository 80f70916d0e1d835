package searchquery

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Document is an object in the form that queries match.
type Document struct {
	// Cluster is the name of the member.
	Cluster string
	// Object is the object's content, as decoded from JSON. It is not changed.
	Object map[string]any
	// Now is the time relative to which the object's age is computed.
	Now time.Time
}

// lastApplied is the annotation of kubectl apply. It repeats the whole object, so text terms do not
// match it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// visible returns the object without the values of a Secret. The Secret's keys remain.
func visible(object map[string]any) map[string]any {
	if !isSecret(object) {
		return object
	}
	redacted := make(map[string]any, len(object))
	for key, value := range object {
		switch key {
		case "data", "stringData":
			value = withoutValues(value)
		case "metadata":
			value = withoutLastApplied(value)
		}
		redacted[key] = value
	}
	return redacted
}

func isSecret(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	return kind == "Secret" && !strings.Contains(apiVersion, "/")
}

func withoutValues(value any) any {
	values, _ := value.(map[string]any)
	keys := make(map[string]any, len(values))
	for key := range values {
		keys[key] = nil
	}
	return keys
}

func withoutLastApplied(value any) any {
	metadata, _ := value.(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, found := annotations[lastApplied]; !found {
		return value
	}
	return withEntry(metadata, "annotations", withoutEntry(annotations, lastApplied))
}

func withEntry(from map[string]any, key string, value any) map[string]any {
	result := withoutEntry(from, key)
	result[key] = value
	return result
}

func withoutEntry(from map[string]any, key string) map[string]any {
	result := make(map[string]any, len(from)+1)
	for k, value := range from {
		if k != key {
			result[k] = value
		}
	}
	return result
}

// scalar returns the text of a string, number or boolean. It returns false for any other value.
func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case int64:
		return strconv.FormatInt(value, 10), true
	case int:
		return strconv.Itoa(value), true
	case int32:
		return strconv.FormatInt(int64(value), 10), true
	case float64:
		if math.Abs(value) < 1e21 {
			return strconv.FormatFloat(value, 'f', -1, 64), true
		}
		return strconv.FormatFloat(value, 'g', -1, 64), true
	}
	return "", false
}
