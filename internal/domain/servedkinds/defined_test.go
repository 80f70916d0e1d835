package servedkinds

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestIsDefinitionOf(t *testing.T) {
	tests := map[string]struct {
		group, name string
		want        bool
	}{
		"of the group":                 {"example.org", "widgets.example.org", true},
		"a group with the same suffix": {"example.org", "widgets.more.example.org", false},
		"a group that is a suffix":     {"more.example.org", "widgets.example.org", false},
		"no group":                     {"example.org", "widgets", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsCRDOfGroup(test.group, test.name); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	for group, want := range map[string]bool{"": true, "apps": true, "example.org": false} {
		if got := IsBuiltInGroup(group); got != want {
			t.Errorf("IsBuiltIn(%q) = %v", group, got)
		}
	}
}

func TestCRDDefinesKind(t *testing.T) {
	kind := schema.GroupKind{Group: "example.org", Kind: "Widget"}
	definition := func(group, wanted, accepted string) map[string]any {
		return map[string]any{
			"spec":   map[string]any{"group": group, "names": map[string]any{"kind": wanted}},
			"status": map[string]any{"acceptedNames": map[string]any{"kind": accepted}},
		}
	}
	tests := map[string]struct {
		definition map[string]any
		want       bool
	}{
		"the kind":                           {definition("example.org", "Widget", "Widget"), true},
		"the kind until its name is changed": {definition("example.org", "Gadget", "Widget"), true},
		"the kind, not accepted yet":         {definition("example.org", "Widget", ""), true},
		"another kind":                       {definition("example.org", "Gadget", "Gadget"), false},
		"the kind in another group":          {definition("example.net", "Widget", "Widget"), false},
		"an empty definition":                {map[string]any{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CRDDefinesKind(test.definition, kind); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
