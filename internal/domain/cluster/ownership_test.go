package cluster

import "testing"

func TestOwners(t *testing.T) {
	tests := map[string]struct {
		annotation, id        string
		other, added, removed string
	}{
		"an object of an earlier version has no owner": {id: "a", added: "a"},
		"an own object":                                     {annotation: "a", id: "a", added: "a"},
		"an object of another control plane":                {annotation: "b", id: "a", other: "b", added: "a,b", removed: "b"},
		"a shared object":                                   {annotation: "a,b", id: "a", other: "b", added: "a,b", removed: "b"},
		"an unknown control plane owns nothing":             {annotation: "a", other: "a", added: "a", removed: "a"},
		"an unknown control plane and an unmarked object":   {},
		"texts that are not IDs are ignored":                {annotation: "a, b\n,$(rm),,c", id: "a", other: "c", added: "a,c", removed: "c"},
		"the order and the number of entries do not matter": {annotation: "c,b,c", id: "b", other: "c", added: "b,c", removed: "c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := OtherOwner(test.annotation, test.id); got != test.other {
				t.Errorf("OtherOwner = %q, want %q", got, test.other)
			}
			if got := AddOwner(test.annotation, test.id); got != test.added {
				t.Errorf("AddOwner = %q, want %q", got, test.added)
			}
			if got := RemoveOwner(test.annotation, test.id); got != test.removed {
				t.Errorf("RemoveOwner = %q, want %q", got, test.removed)
			}
		})
	}
}
