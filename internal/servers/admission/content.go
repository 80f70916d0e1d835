package admission

import (
	"fmt"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// content decodes JSON as custom resources are held: whole numbers as int64.
// Nothing, and null, give nil.
func content(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil {
		return nil, &undecodableError{fmt.Errorf("decoding the object: %w", err)}
	}
	return decoded, nil
}
