package interpret

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

const (
	fileHead = "apiVersion: config.karmada.io/v1alpha1\nkind: ResourceInterpreterCustomization\nmetadata:\n  name: fleet\n"
	target   = "spec:\n  target:\n    apiVersion: games.example.io/v1\n    kind: Fleet\n"
)

func TestWriteBack(t *testing.T) {
	set := func(operation configv1alpha1.InterpreterOperation, text string) map[configv1alpha1.InterpreterOperation]string {
		return map[configv1alpha1.InterpreterOperation]string{operation: text}
	}
	tests := map[string]struct {
		name, before string
		scripts      map[configv1alpha1.InterpreterOperation]string
		want         string
	}{
		"a script becomes a block, and comments stay": {
			before:  "# first\n" + fileHead + target + "  customizations:\n    # health\n    healthInterpretation:\n      luaScript: \"return 1\" # one\n# last\n",
			scripts: set("InterpretHealth", "return 2\nreturn 3\n"),
			want:    "# first\n" + fileHead + target + "  customizations:\n    # health\n    healthInterpretation:\n      luaScript: | # one\n        return 2\n        return 3\n# last\n",
		},
		"a script is added to an empty mapping": {
			before:  fileHead + target + "  customizations: {}\n",
			scripts: set("Retain", "return 1\n"),
			want:    fileHead + target + "  customizations:\n    retention:\n      luaScript: |\n        return 1\n",
		},
		"a script is added to a null": {
			before:  fileHead + target + "  customizations:\n    retention: null\n",
			scripts: set("Retain", "return 1\n"),
			want:    fileHead + target + "  customizations:\n    retention:\n      luaScript: |\n        return 1\n",
		},
		"a script is added to a file without customizations": {
			before:  fileHead + target,
			scripts: set("Retain", "return 1\n"),
			want:    fileHead + target + "  customizations:\n    retention:\n      luaScript: |\n        return 1\n",
		},
		"a script is removed": {
			before: fileHead + target + "  customizations:\n    retention:\n      luaScript: return 1\n",
			want:   fileHead + target + "  customizations: {}\n",
		},
		"a comment in an empty document stays": {
			before:  "# a\n---\n" + fileHead + target + "  customizations: {}\n",
			scripts: set("Retain", "return 1\n"),
			want:    "# a\n" + fileHead + target + "  customizations:\n    retention:\n      luaScript: |\n        return 1\n",
		},
		"flow style stays": {
			before:  "{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: fleet}, spec: {target: {apiVersion: games.example.io/v1, kind: Fleet}, customizations: {retention: {luaScript: return 1}}}}\n",
			scripts: set("Retain", "return 2\n"),
			want:    "{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterCustomization, metadata: {name: fleet}, spec: {target: {apiVersion: games.example.io/v1, kind: Fleet}, customizations: {retention: {luaScript: \"return 2\\n\"}}}}\n",
		},
		"JSON stays": {
			name:    "fleet.json",
			before:  "{\"apiVersion\": \"config.karmada.io/v1alpha1\", \"kind\": \"ResourceInterpreterCustomization\", \"metadata\": {\"name\": \"fleet\"},\n \"spec\": {\"target\": {\"apiVersion\": \"games.example.io/v1\", \"kind\": \"Fleet\"}, \"customizations\": {\"retention\": {\"luaScript\": \"return 1\"}}}}\n",
			scripts: set("Retain", "return 1 < 2\n"),
			want:    "{\"apiVersion\": \"config.karmada.io/v1alpha1\", \"kind\": \"ResourceInterpreterCustomization\", \"metadata\": {\"name\": \"fleet\"},\n \"spec\": {\"target\": {\"apiVersion\": \"games.example.io/v1\", \"kind\": \"Fleet\"}, \"customizations\": {\"retention\": {\"luaScript\": \"return 1 < 2\\n\"}}}}\n",
		},
		"a script is removed in JSON": {
			name:   "fleet.json",
			before: "{\"apiVersion\": \"config.karmada.io/v1alpha1\", \"kind\": \"ResourceInterpreterCustomization\", \"metadata\": {\"name\": \"fleet\"}, \"spec\": {\"target\": {\"apiVersion\": \"games.example.io/v1\", \"kind\": \"Fleet\"}, \"customizations\": {\"retention\": {\"luaScript\": \"return 1\"}}}}\n",
			want:   "{\"apiVersion\": \"config.karmada.io/v1alpha1\", \"kind\": \"ResourceInterpreterCustomization\", \"metadata\": {\"name\": \"fleet\"}, \"spec\": {\"target\": {\"apiVersion\": \"games.example.io/v1\", \"kind\": \"Fleet\"}, \"customizations\": {}}}\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.name == "" {
				test.name = "fleet.yaml"
			}
			path := filepath.Join(t.TempDir(), test.name)
			if err := os.WriteFile(path, []byte(test.before), 0o640); err != nil {
				t.Fatal(err)
			}
			original, err := parseEditedFile(path, []byte(test.before))
			if err != nil {
				t.Fatal(err)
			}
			if err := writeEditedFile(path, []byte(test.before), original, customizationWith(test.scripts)); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(test.want, "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("file (-want +got):\n%s", diff)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("mode %v (%v), want that of before", info.Mode(), err)
			}
			if rest, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(rest) > 0 {
				t.Errorf("temporary files remain: %v (%v)", rest, err)
			}
		})
	}
}

func TestWriteBackChangesTheTarget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.yaml")
	text := []byte(fileHead + target + "  customizations: {}\n")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	original, err := parseEditedFile(path, text)
	if err != nil {
		t.Fatal(err)
	}
	edited := original.DeepCopy()
	edited.Spec.Target = configv1alpha1.CustomizationTarget{APIVersion: "games.example.io/v2", Kind: "Squad"}
	if err := writeEditedFile(path, text, original, edited); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(strings.ReplaceAll(fileHead+target+"  customizations: {}\n", "example.io/v1", "example.io/v2"), "kind: Fleet", "kind: Squad")
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}
