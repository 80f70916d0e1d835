package builtin

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// files holds the shipped customizations and the Lua modules that their scripts require.
//
//go:embed kinds/*.yaml modules/*.lua
var files embed.FS

// Kind is a third-party kind with a shipped customization, and its documentation.
//
// The comment at the start of the file documents the kind: the first lines say what an object of the
// kind is, and each line of the form "# <operation>: <sentence>" describes an operation's rule.
type Kind struct {
	// File is the file name in the folder kinds.
	File string
	// Customization contains the kind's scripts.
	Customization *configv1alpha1.ResourceInterpreterCustomization
	// Description says what an object of the kind is.
	Description string
	// Operations are the operations that have a script, in the order of the file.
	Operations []OperationText
}

// OperationText describes the rule of one operation.
type OperationText struct {
	Name configv1alpha1.InterpreterOperation
	// Text is one or more sentences.
	Text string
}

// Target returns the kind of the objects.
func (k Kind) Target() schema.GroupVersionKind { return interpreter.TargetOf(k.Customization) }

// Customizations returns the shipped customizations, ordered by file name. Each call parses the
// files again, so callers keep the result.
func Customizations() ([]*configv1alpha1.ResourceInterpreterCustomization, error) {
	kinds, err := Kinds()
	if err != nil {
		return nil, err
	}
	list := make([]*configv1alpha1.ResourceInterpreterCustomization, 0, len(kinds))
	for _, kind := range kinds {
		list = append(list, kind.Customization)
	}
	return list, nil
}

// Modules returns the source of each Lua module that the shipped scripts may require, by module name.
func Modules() map[string]string {
	modules := map[string]string{}
	entries, _ := files.ReadDir("modules") // the embedded folder always exists
	for _, entry := range entries {
		text, _ := files.ReadFile(path.Join("modules", entry.Name()))
		modules[strings.TrimSuffix(entry.Name(), ".lua")] = string(text)
	}
	return modules
}

// Kinds returns the shipped kinds with their documentation, ordered by file name.
func Kinds() ([]Kind, error) {
	entries, err := files.ReadDir("kinds")
	if err != nil {
		return nil, fmt.Errorf("listing the shipped customizations: %w", err)
	}
	kinds := make([]Kind, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("kinds", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the shipped customization %s: %w", entry.Name(), err)
		}
		kind, err := parseKind(entry.Name(), string(text))
		if err != nil {
			return nil, fmt.Errorf("parsing the shipped customization %s: %w", entry.Name(), err)
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func parseKind(file, text string) (Kind, error) {
	kind := Kind{File: file, Customization: &configv1alpha1.ResourceInterpreterCustomization{}}
	if err := yaml.UnmarshalStrict([]byte(text), kind.Customization); err != nil {
		return Kind{}, err
	}
	for line := range strings.Lines(text) {
		comment, isComment := strings.CutPrefix(line, "#")
		if !isComment {
			break
		}
		kind.addComment(strings.TrimSpace(comment))
	}
	return kind, nil
}

// addComment adds one line of the comment at the start of a file.
func (k *Kind) addComment(line string) {
	if name, text, found := strings.Cut(line, ": "); found {
		if operation, ok := interpreter.FindScriptOperation(configv1alpha1.InterpreterOperation(name)); ok {
			k.Operations = append(k.Operations, OperationText{Name: operation.Name, Text: text})
			return
		}
	}
	// The line continues the previous text.
	text := &k.Description
	if len(k.Operations) > 0 {
		text = &k.Operations[len(k.Operations)-1].Text
	}
	*text = strings.TrimSpace(*text + " " + line)
}
