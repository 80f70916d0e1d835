package admission

import (
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// decodeJSON decodes JSON in the representation of custom resources, with whole numbers as
// int64. It returns nil for no input and for null.
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
