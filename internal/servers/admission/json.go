package admission

import (
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// decodeJSON decodes JSON to the representation of custom resources, which has whole numbers as
// int64. It returns nil if the input is empty or null.
func decodeJSON(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil {
		return nil, &undecodableError{fmt.Errorf("decoding the object: %w", err)}
	}
	return decoded, nil
}
