package interpret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonutil "k8s.io/apimachinery/pkg/util/json"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/cli/command"
)

// maxFileSize is the maximum size of a file, in bytes. An API server accepts objects of about 1.5 MiB.
const maxFileSize = 16 << 20

// document is one object of a file in YAML or JSON.
type document struct {
	// source is the path or the URL of the file.
	source string
	// number is the position of the object in the file, beginning with 1.
	number int
	// value is the content, with integers as int64.
	value any
	// isItem means that the object is an item of a list.
	isItem bool
}

// place returns where the document is, for error messages.
func (d document) place() string {
	if d.number > 1 {
		return fmt.Sprintf("%s, object %d", d.source, d.number)
	}
	return d.source
}

// readDocuments reads and parses a file.
func (o *options) readDocuments(ctx context.Context, name string) ([]document, error) {
	text, err := o.Program.ReadSource(ctx, name, maxFileSize)
	if err != nil {
		return nil, err
	}
	if name == command.StandardInput {
		name = "standard input"
	}
	return parseDocuments(name, text)
}

// parseDocuments parses a file. Each item of a list becomes a document, and empty documents are left
// out. A file without content is an error, and a list without items is not.
func parseDocuments(source string, text []byte) (documents []document, err error) {
	values, err := parseJSON(text)
	if err != nil && filepath.Ext(source) != ".json" {
		values, err = parseYAML(text)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s", source, oneLine(err))
	case len(values) == 0:
		return nil, fmt.Errorf("%s is empty", source)
	}
	for _, value := range values {
		items, isList := value.([]any)
		if object, isObject := value.(map[string]any); isObject && !isList {
			items, isList = object["items"].([]any)
		}
		if !isList {
			items = []any{value}
		}
		for _, item := range items {
			documents = append(documents, document{source: source, number: len(documents) + 1, value: item, isItem: isList})
		}
	}
	return documents, nil
}

func parseJSON(text []byte) (values []any, err error) {
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			err = fmt.Errorf("line %d: %w", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), err)
		}
		if err != nil {
			return nil, err
		}
		var value any
		if err := jsonutil.Unmarshal(raw, &value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
}

// separator matches the line that begins a document in YAML.
var separator = regexp.MustCompile(`(?m)^---([ \t]|\r?$)`)

// parseYAML returns the documents of a file in YAML. Empty lines replace the earlier documents, so
// that errors have the line numbers of the file.
func parseYAML(text []byte) (values []any, err error) {
	start := 0
	for _, next := range append(separator.FindAllIndex(text, -1), []int{len(text)}) {
		padded := append(bytes.Repeat([]byte("\n"), bytes.Count(text[:start], []byte("\n"))), text[start:next[0]]...)
		start = next[0]
		asJSON, err := yaml.YAMLToJSONStrict(padded)
		if err != nil {
			return nil, err
		}
		var value any
		if err := jsonutil.Unmarshal(asJSON, &value); err != nil {
			return nil, err
		}
		if value != nil {
			values = append(values, value)
		}
		// YAMLToJSONStrict ignores a text after the document.
		decoder, node := yamlv3.NewDecoder(bytes.NewReader(padded)), &yamlv3.Node{}
		if err := decoder.Decode(node); err == nil && !errors.Is(decoder.Decode(node), io.EOF) {
			return nil, fmt.Errorf("text follows the document of line %d: separate documents with a line ---", node.Line)
		}
	}
	return values, nil
}

// object returns the Kubernetes object of a document.
func (d document) object() (*unstructured.Unstructured, error) {
	fields, ok := d.value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not a Kubernetes object", d.place())
	}
	object := &unstructured.Unstructured{Object: fields}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, fmt.Errorf("%s is not a Kubernetes object: apiVersion or kind is missing", d.place())
	}
	if _, err := schema.ParseGroupVersion(object.GetAPIVersion()); err != nil {
		return nil, fmt.Errorf("%s: %w", d.place(), err)
	}
	return object, nil
}

// decode decodes a document into an API type. An error names the field that is unknown or has the
// wrong type.
func (d document) decode(into any) error {
	text, err := json.Marshal(d.value)
	if err != nil {
		return err
	}
	unknown, err := strictjson.UnmarshalStrict(text, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s must be of type %s, not %s", wrong.Field, describeType(wrong.Type), wrong.Value)
	}
	return errors.Join(append(unknown, err)...)
}

// describeType returns the JSON type of the values that a Go type can hold.
func describeType(wanted reflect.Type) string {
	switch wanted.Kind() {
	case reflect.String, reflect.Bool:
		return wanted.Kind().String()
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	default:
		return "integer"
	}
}

// describeKind returns a kind as users write it, such as "apps/v1 Deployment".
func describeKind(kind schema.GroupVersionKind) string {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return apiVersion + " " + name
}
