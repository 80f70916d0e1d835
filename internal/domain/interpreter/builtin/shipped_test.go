package builtin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

func TestParseKind(t *testing.T) {
	text := "# A Foo\n#   is bar.\n# Retain: Keeps one.\n# And: more.\n# InterpretHealth: Never.\nmetadata: {name: foo.example.io}\n# no comment of the start\n"
	got, err := parseKind("foo.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	want := Kind{
		File: "foo.yaml", Customization: &configv1alpha1.ResourceInterpreterCustomization{}, Description: "A Foo is bar.",
		Operations: []OperationText{{configv1alpha1.InterpreterOperationRetain, "Keeps one. And: more."}, {configv1alpha1.InterpreterOperationInterpretHealth, "Never."}},
	}
	want.Customization.Name = "foo.example.io"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, invalid := range map[string]string{"an unknown field is an error": "specs: {}", "text that is no YAML is an error": "{"} {
		if _, err := parseKind("foo.yaml", invalid); err == nil {
			t.Error(name)
		}
	}
}
