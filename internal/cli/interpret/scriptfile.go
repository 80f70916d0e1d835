package interpret

import (
	"errors"
	"fmt"
	"strings"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// The markers of the file in the editor. Each marker begins a line.
const (
	nameMarker       = "---@name:"
	apiVersionMarker = "---@apiVersion:"
	kindMarker       = "---@kind:"
	ruleMarker       = "---@rule:"
)

var headerMarkers = []string{nameMarker, apiVersionMarker, kindMarker}

// editHelp is the beginning of the file in the editor.
const editHelp = `-- Edit the scripts below. A script is the text after the line with its ---@rule.
-- An operation without a script is not customized. Keep the lines with ---@.
-- If you save the file without a change, nothing is written.
`

// scriptFile is the content of the file in the editor.
type scriptFile struct {
	// header has the text after each header marker.
	header map[string]string
	// scripts has the script of each customized operation.
	scripts map[configv1alpha1.InterpreterOperation]string
}

func newScriptFile(from *configv1alpha1.ResourceInterpreterCustomization) scriptFile {
	file := scriptFile{
		header:  map[string]string{nameMarker: from.Name, apiVersionMarker: from.Spec.Target.APIVersion, kindMarker: from.Spec.Target.Kind},
		scripts: map[configv1alpha1.InterpreterOperation]string{},
	}
	for _, operation := range interpreter.ScriptOperations() {
		if text := operation.Script(&from.Spec.Customizations); text != "" {
			file.scripts[operation.Name] = text
		}
	}
	return file
}

// validateEditable returns an error if the text of a script would be read as a marker.
func (f scriptFile) validateEditable() error {
	for operation, text := range f.scripts {
		for line := range strings.Lines(text) {
			if marker, _ := cutMarker(line); marker != "" {
				return fmt.Errorf("the script %s has the line %q, which --edit uses as a marker: edit the customization with another command",
					operation, strings.TrimSpace(line))
			}
		}
	}
	return nil
}

// format returns the text for the editor.
func (f scriptFile) format(showsDoc bool) string {
	var text strings.Builder
	text.WriteString(editHelp + "\n")
	for _, marker := range headerMarkers {
		fmt.Fprintf(&text, "%s %s\n", marker, f.header[marker])
	}
	for _, operation := range interpreter.ScriptOperations() {
		fmt.Fprintf(&text, "\n%s %s\n", ruleMarker, operation.Name)
		if showsDoc {
			text.WriteString(formatDoc(operation))
		}
		if script := f.scripts[operation.Name]; script != "" {
			text.WriteString(strings.TrimRight(script, "\n") + "\n")
		}
	}
	return text.String()
}

// formatDoc returns the description of an operation as a comment in Lua.
func formatDoc(operation interpreter.ScriptOperation) string { return "-- " + operation.Help + "\n" }

// insertProblem replaces the header of a text that was not accepted with the help and the problem.
func insertProblem(text string, problem error) string {
	offset := 0
	for line := range strings.Lines(text) {
		if marker, _ := cutMarker(line); marker != "" || !isComment(line) {
			break
		}
		offset += len(line)
	}
	return editHelp + "--\n-- error: " + strings.ReplaceAll(strings.TrimSpace(problem.Error()), "\n", "\n-- error: ") + "\n\n" + text[offset:]
}

// isComment reports whether a line outside of the scripts can be ignored.
func isComment(line string) bool {
	text := strings.TrimSpace(line)
	return text == "" || strings.HasPrefix(text, "--")
}

// cutMarker returns the marker with which a line begins, or "", and the text after the marker.
func cutMarker(line string) (marker, text string) {
	for _, marker := range append(headerMarkers, ruleMarker) {
		if text, found := strings.CutPrefix(line, marker); found {
			return marker, strings.TrimSpace(text)
		}
	}
	return "", line
}

// parseScriptFile parses the text of the editor, with the descriptions of format if hasDoc is true.
// The errors quote lines instead of numbers, because the header with the error moves the lines.
func parseScriptFile(text string, hasDoc bool) (scriptFile, error) {
	file := scriptFile{header: map[string]string{}, scripts: map[configv1alpha1.InterpreterOperation]string{}}
	var current configv1alpha1.InterpreterOperation
	for line := range strings.Lines(text) {
		marker, value := cutMarker(line)
		operation := configv1alpha1.InterpreterOperation(value)
		_, hasHeader := file.header[marker]
		_, hasRule := file.scripts[operation]
		switch {
		case marker == "" && current != "":
			file.scripts[current] += line
		case marker == "" && !isComment(line):
			return scriptFile{}, fmt.Errorf("the text %q is before the first %s: move it into a script", strings.TrimSpace(line), ruleMarker)
		case marker == "":
		case hasHeader || marker == ruleMarker && hasRule:
			return scriptFile{}, fmt.Errorf("%s %s occurs twice", marker, value)
		case marker != ruleMarker:
			file.header[marker] = value
		default:
			if _, isKnown := interpreter.FindScriptOperation(operation); !isKnown {
				return scriptFile{}, fmt.Errorf("%s %s: unknown operation: one of %s", ruleMarker, value, strings.Join(operationNames(), ", "))
			}
			file.scripts[operation], current = "", operation
		}
	}
	for _, marker := range headerMarkers {
		if _, found := file.header[marker]; !found {
			return scriptFile{}, fmt.Errorf("the line with %s is missing", marker)
		}
	}
	file.trimScripts(hasDoc)
	return file, nil
}

// trimScripts removes descriptions, blank lines around scripts, and empty scripts.
func (f scriptFile) trimScripts(hasDoc bool) {
	for _, operation := range interpreter.ScriptOperations() {
		text := f.scripts[operation.Name]
		if hasDoc {
			text = strings.Replace(text, formatDoc(operation), "", 1)
		}
		f.scripts[operation.Name] = strings.Trim(text, "\n")
		if strings.TrimSpace(text) == "" {
			delete(f.scripts, operation.Name)
		}
	}
}

// applyTo changes the customization, and returns whether anything differs. A script that differs
// only in blank lines at its ends stays as it is.
func (f scriptFile) applyTo(edited *configv1alpha1.ResourceInterpreterCustomization) (changed bool) {
	target := configv1alpha1.CustomizationTarget{APIVersion: f.header[apiVersionMarker], Kind: f.header[kindMarker]}
	changed = edited.Spec.Target != target
	edited.Spec.Target = target
	for _, operation := range interpreter.ScriptOperations() {
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
	if found := f.header[nameMarker]; found != name {
		problems = append(problems, fmt.Errorf("%s is %q, but the name of a customization cannot be changed: write %q", nameMarker, found, name))
	}
	if f.header[apiVersionMarker] == "" || f.header[kindMarker] == "" {
		problems = append(problems, fmt.Errorf("%s and %s must not be empty", apiVersionMarker, kindMarker))
	}
	for _, operation := range interpreter.ScriptOperations() {
		if text := f.scripts[operation.Name]; text != "" {
			if err := compile(text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %s", operation.Name, oneLine(err)))
			}
		}
	}
	return errors.Join(problems...)
}
