package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// documentOperation is an operation on a YAML or JSON document in a field.
type documentOperation struct {
	path     string
	operator policyv1alpha1.OverriderOperator
	raw      []byte
}

// overrideField changes a document that is stored as a string in a field, such as a configuration file in
// a ConfigMap. An entry without operations does not even change the string's layout.
func overrideField(manifest *unstructured.Unstructured, entry policyv1alpha1.FieldOverrider) (string, error) {
	if len(entry.YAML) == 0 && len(entry.JSON) == 0 {
		return "it has neither json nor yaml operations", nil
	}
	path, err := jsonedit.ParsePointer(entry.FieldPath)
	if err != nil {
		return "", err
	}
	current, err := path.Get(manifest.Object)
	if err != nil {
		return "", patchOperation{operator: policyv1alpha1.OverriderOpRemove, path: path}.addRemedy(err)
	}
	text, ok := current.(string)
	if !ok {
		return "", mismatchf(entry.FieldPath, "set fieldPath to the path of a string", "expected a string, found %s", jsonedit.TypeName(current))
	}
	changed, err := patchText(text, entry)
	if err != nil {
		return "", atField(entry.FieldPath, err)
	}
	_, err = patchOperation{operator: policyv1alpha1.OverriderOpReplace, path: path, value: changed}.apply(manifest.Object)
	return "", err
}

// patchText patches a YAML document if the entry has YAML operations, and a JSON document otherwise. A YAML
// document loses its comments and the order of its keys.
func patchText(text string, entry policyv1alpha1.FieldOverrider) (string, error) {
	if len(entry.YAML) > 0 {
		operations := make([]documentOperation, len(entry.YAML))
		for i, op := range entry.YAML {
			operations[i] = documentOperation{op.SubPath, op.Operator, op.Value.Raw}
		}
		return patchDocument(text, operations, decodeYAML, encodeYAML)
	}
	operations := make([]documentOperation, len(entry.JSON))
	for i, op := range entry.JSON {
		operations[i] = documentOperation{op.SubPath, op.Operator, op.Value.Raw}
	}
	return patchDocument(text, operations, decodeJSON, encodeJSON)
}

func patchDocument(
	text string, operations []documentOperation,
	decode func(string) (any, error), encode func(any) (string, error),
) (string, error) {
	document, err := decode(text)
	if err != nil {
		return "", err
	}
	for i, operation := range operations {
		path, err := jsonedit.ParsePointer(operation.path)
		if err != nil {
			return "", fmt.Errorf("operation %d: %w", i, err)
		}
		var value any
		if len(operation.raw) > 0 {
			if value, err = decodeJSON(string(operation.raw)); err != nil {
				return "", fmt.Errorf("operation %d, decoding its value: %w", i, err)
			}
		}
		document, err = patchOperation{operator: operation.operator, path: path, value: value}.apply(document)
		if err != nil {
			return "", fmt.Errorf("operation %d at subPath %q: %w", i, operation.path, err)
		}
	}
	return encode(document)
}

// decodeJSON decodes a JSON document. It keeps numbers as text, so that they are not rounded.
func decodeJSON(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, &mismatchError{remedy: "set fieldPath to the path of a JSON document, or use yaml", err: fmt.Errorf("decoding JSON: %w", err)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &mismatchError{remedy: "keep a single JSON document in the field",
			err: errors.New("decoding JSON: more text after the document")}
	}
	return document, nil
}

func encodeJSON(document any) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("encoding JSON: %w", err)
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))), nil
}

func decodeYAML(text string) (any, error) {
	if countDocuments(text) > 1 {
		// More than one document is an error, because the decoder would silently ignore all
		// documents except the first.
		return nil, &mismatchError{remedy: "keep a single YAML document in the field", err: errors.New("decoding YAML: more than one document")}
	}
	var document any
	if err := utilyaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, &mismatchError{remedy: "set fieldPath to the path of a YAML document", err: fmt.Errorf("decoding YAML: %w", err)}
	}
	return document, nil
}

// countDocuments returns the number of non-empty YAML documents in the text.
func countDocuments(text string) (count int) {
	counted := false
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); strings.HasPrefix(line, "%") {
			continue // a YAML directive
		}
		marker, rest, _ := strings.Cut(line, " ")
		if marker == "---" || marker == "..." {
			counted, line = false, rest
		}
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !counted {
			counted = true
			count++
		}
	}
	return count
}

func encodeYAML(document any) (string, error) {
	text, err := yaml.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("encoding YAML: %w", err)
	}
	return string(text), nil
}

// atField adds the field's path to an error in the document that the field contains.
func atField(fieldPath string, err error) error {
	_, remedy := locate(err)
	return &mismatchError{path: fieldPath, remedy: remedy, err: err}
}
