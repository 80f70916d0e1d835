package interpret

import (
	"errors"
	"fmt"
	"strings"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter/customization"
)

// The markers of the file in the editor. Each marker begins a line.
const (
	nameMarker       = "---@name:"
	apiVersionMarker = "---@apiVersion:"
	kindMarker       = "---@kind:"
	ruleMarker       = "---@rule:"
)

var markers = []string{nameMarker, apiVersionMarker, kindMarker, ruleMarker}

// editHeader is the beginning of the file in the editor.
const editHeader = `-- Edit the scripts below. A script is the text after the line with its ---@rule.
-- An operation without a script is not customized. Keep the lines with ---@.
-- If you save the file without a change, nothing is written.
`

// scriptFile is the content of the file in the editor.
type scriptFile struct {
	name   string
	target configv1alpha1.CustomizationTarget
	// scripts has a script for each operation that is customized.
	scripts map[configv1alpha1.InterpreterOperation]string
}

func newScriptFile(from *configv1alpha1.ResourceInterpreterCustomization) scriptFile {
	file := scriptFile{name: from.Name, target: from.Spec.Target, scripts: map[configv1alpha1.InterpreterOperation]string{}}
	for _, operation := range customization.Operations() {
		if text := operation.Script(&from.Spec.Customizations); text != "" {
			file.scripts[operation.Name] = text
		}
	}
	return file
}

// checkEditable returns an error if the text of a script would be read as a marker.
func (f scriptFile) checkEditable() error {
	for operation, text := range f.scripts {
		for line := range strings.Lines(text) {
			if markerOf(line) != "" {
				return fmt.Errorf("the script %s has the line %q, which --edit uses as a marker: edit the customization with another command", operation, strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// format returns the text for the editor.
func (f scriptFile) format(showsDoc bool) string {
	var text strings.Builder
	text.WriteString(formatHeader(nil))
	fmt.Fprintf(&text, "%s %s\n%s %s\n%s %s\n", nameMarker, f.name, apiVersionMarker, f.target.APIVersion, kindMarker, f.target.Kind)
	for _, operation := range customization.Operations() {
		fmt.Fprintf(&text, "\n%s %s\n", ruleMarker, operation.Name)
		if showsDoc {
			text.WriteString(docOf(operation))
		}
		if script := f.scripts[operation.Name]; script != "" {
			text.WriteString(strings.TrimRight(script, "\n") + "\n")
		}
	}
	return text.String()
}

// docWidth is the maximum number of characters of a line with a description.
const docWidth = 100

// docOf returns the description of an operation as comments in Lua.
func docOf(operation customization.Operation) string {
	var text strings.Builder
	line := "--"
	for _, word := range strings.Fields(operation.Help) {
		if len(line)+1+len(word) > docWidth {
			text.WriteString(line + "\n")
			line = "--"
		}
		line += " " + word
	}
	return text.String() + line + "\n"
}

// withProblem replaces the header of a text that was not accepted, and keeps the rest.
func withProblem(text string, problem error) string {
	offset := 0
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); markerOf(line) != "" || trimmed != "" && !strings.HasPrefix(trimmed, "--") {
			break
		}
		offset += len(line)
	}
	return formatHeader(problem) + text[offset:]
}

// formatHeader returns the beginning of the file. problem is why the last text was not accepted, or
// nil.
func formatHeader(problem error) string {
	text := editHeader
	if problem != nil {
		text += "--\n"
		for line := range strings.Lines(problem.Error()) {
			text += "-- error: " + strings.TrimRight(line, "\n") + "\n"
		}
	}
	return text + "\n"
}

// markerOf returns the marker with which a line begins, or "".
func markerOf(line string) string {
	for _, marker := range markers {
		if strings.HasPrefix(line, marker) {
			return marker
		}
	}
	return ""
}

// parseScriptFile parses the text of the editor, with the descriptions of format. The errors
// quote lines instead of numbers, because the header with the error moves the lines.
func parseScriptFile(text string, hasDoc bool) (scriptFile, error) {
	parser := scriptParser{hasDoc: hasDoc, file: scriptFile{scripts: map[configv1alpha1.InterpreterOperation]string{}}, seen: map[string]bool{}}
	for line := range strings.Lines(text) {
		if err := parser.addLine(line); err != nil {
			return scriptFile{}, err
		}
	}
	parser.endScript()
	for _, marker := range markers[:3] {
		if !parser.seen[marker] {
			return scriptFile{}, fmt.Errorf("the line with %s is missing", marker)
		}
	}
	return parser.file, nil
}

// scriptParser parses one line after the other.
type scriptParser struct {
	hasDoc bool
	file   scriptFile
	// seen has the markers, and the operations, that occurred.
	seen map[string]bool
	// rule is the operation of the current script. Its Name is empty before the first script.
	rule   customization.Operation
	script strings.Builder
}

func (p *scriptParser) addLine(line string) error {
	marker := markerOf(line)
	if marker == "" {
		return p.addText(line)
	}
	value := strings.TrimSpace(strings.TrimPrefix(line, marker))
	key := marker
	if marker == ruleMarker {
		key = value
	}
	if p.seen[key] {
		return fmt.Errorf("%s %s occurs twice", marker, value)
	}
	p.seen[key] = true
	switch marker {
	case nameMarker:
		p.file.name = value
	case apiVersionMarker:
		p.file.target.APIVersion = value
	case kindMarker:
		p.file.target.Kind = value
	default:
		return p.beginScript(value)
	}
	return nil
}

// addText adds a line of a script. Before the first script, only comments are allowed, because the
// text would be lost.
func (p *scriptParser) addText(line string) error {
	if p.rule.Name != "" {
		p.script.WriteString(line)
		return nil
	}
	if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--") {
		return fmt.Errorf("the text %q is before the first %s: move it into a script", trimmed, ruleMarker)
	}
	return nil
}

func (p *scriptParser) beginScript(name string) error {
	p.endScript()
	operation, found := customization.OperationNamed(configv1alpha1.InterpreterOperation(name))
	if !found {
		return fmt.Errorf("%s %s: unknown operation: one of %s", ruleMarker, name, strings.Join(operationNames(), ", "))
	}
	p.rule = operation
	return nil
}

// endScript stores the current script without its description, and without blank lines around it.
func (p *scriptParser) endScript() {
	text := p.script.String()
	if p.hasDoc {
		text = strings.Replace(text, docOf(p.rule), "", 1)
	}
	text = strings.Trim(text, "\n")
	if strings.TrimSpace(text) != "" {
		p.file.scripts[p.rule.Name] = text
	}
	p.script.Reset()
}

// applyTo changes the customization, and returns whether anything differs. A script that differs
// only in blank lines at its ends stays as it is.
func (f scriptFile) applyTo(edited *configv1alpha1.ResourceInterpreterCustomization) (changed bool) {
	if edited.Spec.Target != f.target {
		edited.Spec.Target, changed = f.target, true
	}
	for _, operation := range customization.Operations() {
		before, after := operation.Script(&edited.Spec.Customizations), f.scripts[operation.Name]
		if strings.Trim(before, "\n") == after {
			continue
		}
		changed = true
		if after != "" {
			after += "\n"
		}
		operation.SetScript(&edited.Spec.Customizations, after)
	}
	return changed
}

// validate returns an error if the file cannot be written back. compile returns an error for an
// invalid script.
func (f scriptFile) validate(name string, compile func(string) error) error {
	var problems []error
	if f.name != name {
		problems = append(problems, fmt.Errorf("%s is %q, but the name of a customization cannot be changed: write %q", nameMarker, f.name, name))
	}
	if f.target.APIVersion == "" || f.target.Kind == "" {
		problems = append(problems, fmt.Errorf("%s and %s must not be empty", apiVersionMarker, kindMarker))
	}
	for _, operation := range customization.Operations() {
		if text := f.scripts[operation.Name]; text != "" {
			if err := compile(text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s", operation.Name, oneLine(err)))
			}
		}
	}
	return errors.Join(problems...)
}
