package interpret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/cli/command"
)

// hasOutputFormat reports whether --output or --template is given.
func (o *options) hasOutputFormat() bool {
	return *o.printFlags.OutputFormat != "" || *o.printFlags.TemplatePrinterFlags.TemplateArgument != ""
}

// validateOutput returns a usage error if the output format is unknown, or needs an object with a
// name.
func (o *options) validateOutput() error {
	if *o.printFlags.OutputFormat == "name" && !o.edits {
		return command.NewUsageError("--output name prints the name of the edited customization: use it with --edit")
	}
	if _, err := o.printFlags.ToPrinter(); err != nil {
		return command.NewUsageError("--output: %w", err)
	}
	return nil
}

// printResults prints each result as a YAML document, or all results as one document if an output
// format is given.
func (o *options) printResults(results []result) error {
	fields := map[string]any{}
	var text strings.Builder
	for i, result := range results {
		if object, ok := result.value.(map[string]any); ok && !o.printFlags.JSONYamlPrintFlags.ShowManagedFields {
			unstructured.RemoveNestedField(object, "metadata", "managedFields")
		}
		fields[result.name] = result.value
		document, err := yaml.Marshal(result.value)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", result.name, err)
		}
		fmt.Fprintf(&text, "---\n# [%d/%d] %s:\n%s", i+1, len(results), result.name, document)
	}
	if o.hasOutputFormat() {
		return o.printDocument(fields)
	}
	_, err := fmt.Fprint(o.Program.Out, text.String())
	return err
}

// printDocument prints a value in the output format. The value needs no kind.
func (o *options) printDocument(value any) error {
	printer, err := o.printFlags.ToPrinter()
	if err != nil {
		return err
	}
	encoded, err := encodeJSON(value)
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	return printer.PrintObj(&runtime.Unknown{Raw: encoded, ContentType: runtime.ContentTypeJSON}, o.Program.Out)
}

// encodeJSON encodes a value. Unlike json.Marshal, it keeps the operators of scripts, such as <.
func encodeJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}
