package interpret

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// customizationWith returns a customization with the given scripts.
func customizationWith(scripts map[configv1alpha1.InterpreterOperation]string) *configv1alpha1.ResourceInterpreterCustomization {
	made := &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet"},
		Spec:       configv1alpha1.ResourceInterpreterCustomizationSpec{Target: configv1alpha1.CustomizationTarget{APIVersion: "games.example.io/v1", Kind: "Fleet"}},
	}
	for _, operation := range interpreter.ScriptOperations() {
		operation.SetScript(&made.Spec.Customizations, scripts[operation.Name])
	}
	return made
}

// A text that is not changed in the editor changes nothing, and a text that was rejected is read
// like the text without the error.
func TestScriptFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scripts := map[configv1alpha1.InterpreterOperation]string{}
		for _, operation := range interpreter.ScriptOperations() {
			lines := rapid.SliceOf(rapid.SampledFrom([]string{"", "return 1", "-- comment", "  ---@name", "\tx = [[", "]]", "--", formatDoc(operation)})).Draw(t, "lines")
			if text := strings.Join(lines, "\n"); strings.TrimSpace(text) != "" {
				scripts[operation.Name] = text
			}
		}
		original := customizationWith(scripts)
		hasDoc := rapid.Bool().Draw(t, "doc")
		text := newScriptFile(original).format(hasDoc)
		for _, saved := range []string{text, insertProblem(text, errors.New("a problem\nin two lines"))} {
			file, err := parseScriptFile(saved, hasDoc)
			if err != nil {
				t.Fatalf("%v in:\n%s", err, saved)
			}
			edited := original.DeepCopy()
			if file.applyTo(edited) || file.header[nameMarker] != original.Name {
				t.Fatalf("the text changes the customization:\n%s\n%s", saved, cmp.Diff(original, edited))
			}
		}
	})
}

func TestParseScriptFile(t *testing.T) {
	const head = "---@name: fleet\n---@apiVersion: games.example.io/v1\n---@kind: Fleet\n"
	tests := map[string]struct {
		text string
		want map[configv1alpha1.InterpreterOperation]string
		err  string
	}{
		"no scripts":                  {text: head},
		"a script":                    {text: head + "---@rule: Retain\n\nreturn 1\n\n", want: map[configv1alpha1.InterpreterOperation]string{"Retain": "return 1"}},
		"a script without a line end": {text: head + "---@rule: Retain\nreturn 1", want: map[configv1alpha1.InterpreterOperation]string{"Retain": "return 1"}},
		"a script of blanks":          {text: head + "---@rule: Retain\n  \n\t\n"},
		"a rule twice":                {text: head + "---@rule: Retain\n---@rule: Retain\n", err: "---@rule: Retain occurs twice"},
		"a name twice":                {text: head + "---@name: other\n", err: "---@name: other occurs twice"},
		"an unknown rule":             {text: head + "---@rule: Prune\n", err: "---@rule: Prune: unknown operation: one of Retain"},
		"text before the rules":       {text: head + "x = 1\n", err: `the text "x = 1" is before the first ---@rule:`},
		"no kind":                     {text: "---@name: fleet\n---@apiVersion: v1\n", err: "the line with ---@kind: is missing"},
		"nothing":                     {err: "the line with ---@name: is missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := parseScriptFile(test.text, false)
			if !matches(err, test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if test.want == nil {
				test.want = map[configv1alpha1.InterpreterOperation]string{}
			}
			if err == nil {
				if diff := cmp.Diff(test.want, file.scripts); diff != "" {
					t.Errorf("scripts (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func FuzzParseScriptFile(f *testing.F) {
	f.Add(newScriptFile(customizationWith(nil)).format(true))
	f.Add("---@rule: Retain\n---@name:")
	f.Fuzz(func(t *testing.T, text string) {
		for _, hasDoc := range []bool{false, true} {
			if file, err := parseScriptFile(text, hasDoc); err == nil {
				file.applyTo(customizationWith(nil))
			}
		}
		if again := insertProblem(insertProblem(text, errors.New("a")), errors.New("a")); again != insertProblem(text, errors.New("a")) {
			t.Errorf("the header grows: %q", again)
		}
	})
}

func TestScriptWithAMarkerIsNotEditable(t *testing.T) {
	tests := map[string]struct {
		script string
		err    string
	}{
		"a script":                    {script: "return 1"},
		"a marker that begins a line": {script: "return 1\n---@rule: Retain\n", err: `the script InterpretHealth has the line "---@rule: Retain"`},
		"a marker within a line":      {script: "return 1 ---@rule: Retain\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			original := customizationWith(map[configv1alpha1.InterpreterOperation]string{"InterpretHealth": test.script})
			if err := newScriptFile(original).validateEditable(); !matches(err, test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}
