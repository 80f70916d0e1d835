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
)

// subpatch is one operation on the document inside a field. The operations of
// both formats have the same three parts.
type subpatch struct {
	path     string
	operator policyv1alpha1.OverriderOperator
	raw      []byte
}

// overrideField changes a document that is kept as text in a field, such as a
// configuration file in a ConfigMap. An entry without operations changes nothing,
// not even the layout of the text.
func overrideField(manifest *unstructured.Unstructured, entry policyv1alpha1.FieldOverrider) error {
	if len(entry.YAML) == 0 && len(entry.JSON) == 0 {
		return nil
	}
	path, err := parsePointer(entry.FieldPath)
	if err != nil {
		return err
	}
	current, err := path.get(manifest.Object)
	if err != nil {
		return edit{operator: policyv1alpha1.OverriderOpRemove, path: path}.advise(err)
	}
	text, ok := current.(string)
	if !ok {
		return mismatchf(entry.FieldPath, "let fieldPath lead to a string", "expected a string, found %s", describe(current))
	}
	changed, err := changeText(text, entry)
	if err != nil {
		return within(entry.FieldPath, err)
	}
	_, err = edit{operator: policyv1alpha1.OverriderOpReplace, path: path, value: changed}.apply(manifest.Object)
	return err
}

// changeText patches a YAML document if YAML operations are given, else a JSON
// document. YAML loses its comments and the order of its keys.
func changeText(text string, entry policyv1alpha1.FieldOverrider) (string, error) {
	if len(entry.YAML) > 0 {
		operations := make([]subpatch, len(entry.YAML))
		for i, op := range entry.YAML {
			operations[i] = subpatch{op.SubPath, op.Operator, op.Value.Raw}
		}
		return changeDocument(text, operations, decodeYAML, encodeYAML)
	}
	operations := make([]subpatch, len(entry.JSON))
	for i, op := range entry.JSON {
		operations[i] = subpatch{op.SubPath, op.Operator, op.Value.Raw}
	}
	return changeDocument(text, operations, decodeJSON, encodeJSON)
}

func changeDocument(
	text string, operations []subpatch,
	decode func(string) (any, error), encode func(any) (string, error),
) (string, error) {
	document, err := decode(text)
	if err != nil {
		return "", err
	}
	for i, operation := range operations {
		path, err := parsePointer(operation.path)
		if err != nil {
			return "", fmt.Errorf("operation %d: %w", i, err)
		}
		var value any
		if len(operation.raw) > 0 {
			if value, err = decodeJSON(string(operation.raw)); err != nil {
				return "", fmt.Errorf("operation %d, decoding its value: %w", i, err)
			}
		}
		document, err = edit{operator: operation.operator, path: path, value: value}.apply(document)
		if err != nil {
			return "", fmt.Errorf("operation %d at subPath %q: %w", i, operation.path, err)
		}
	}
	return encode(document)
}

// decodeJSON keeps numbers as they are written: a document is not ours to round.
func decodeJSON(text string) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, &mismatchError{remedy: "let fieldPath lead to a JSON document, or use yaml", err: fmt.Errorf("decoding JSON: %w", err)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &mismatchError{remedy: "let the field hold a single JSON document", err: errors.New("decoding JSON: more text after the document")}
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
	if documents(text) > 1 {
		// The decoder would drop all but the first without a word.
		return nil, &mismatchError{remedy: "let the field hold a single YAML document", err: errors.New("decoding YAML: more than one document")}
	}
	var document any
	if err := utilyaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, &mismatchError{remedy: "let fieldPath lead to a YAML document", err: fmt.Errorf("decoding YAML: %w", err)}
	}
	return document, nil
}

// documents counts the YAML documents in a text that say anything.
func documents(text string) (count int) {
	said := false
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); strings.HasPrefix(line, "%") {
			continue // about the document that follows
		}
		mark, rest, _ := strings.Cut(line, " ")
		if mark == "---" || mark == "..." {
			said, line = false, rest
		}
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !said {
			said = true
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

// within moves an error from the document to the field that holds it.
func within(fieldPath string, err error) error {
	var place *mismatchError
	if errors.As(err, &place) {
		return &mismatchError{path: fieldPath, remedy: place.remedy, err: err}
	}
	return &mismatchError{path: fieldPath, err: err}
}
