package interpreter

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func kindNamed(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: name}
}

// numberedKinds returns n kinds with consecutive numbers, beginning with first.
func numberedKinds(first, n int) (kinds []schema.GroupVersionKind) {
	for i := range n {
		kinds = append(kinds, kindNamed(fmt.Sprintf("Kind%d", first+i)))
	}
	return kinds
}

func TestKinds(t *testing.T) {
	a, b, c := kindNamed("A"), kindNamed("B"), kindNamed("C")
	otherVersion := a
	otherVersion.Version = "v2"
	tests := map[string]struct {
		kinds          Kinds
		want           []schema.GroupVersionKind
		isEmpty, isAll bool
		has, hasNot    []schema.GroupVersionKind
	}{
		"the zero value is empty":                  {isEmpty: true, hasNot: []schema.GroupVersionKind{a}},
		"a set without kinds is empty":             {kinds: KindsOf(), isEmpty: true},
		"kinds are sorted and listed once":         {kinds: KindsOf(b, a, b), want: []schema.GroupVersionKind{a, b}, has: []schema.GroupVersionKind{a, b}, hasNot: []schema.GroupVersionKind{c}},
		"another version is another kind":          {kinds: KindsOf(a), want: []schema.GroupVersionKind{a}, hasNot: []schema.GroupVersionKind{otherVersion}},
		"a union has the kinds of both":            {kinds: KindsOf(a, b).Union(KindsOf(b, c)), want: []schema.GroupVersionKind{a, b, c}},
		"a union with nothing is the set":          {kinds: Kinds{}.Union(KindsOf(a)), want: []schema.GroupVersionKind{a}},
		"all kinds have each kind":                 {kinds: AllKinds(), isAll: true, has: []schema.GroupVersionKind{a, {}}},
		"a union with all kinds has all kinds":     {kinds: KindsOf(a).Union(AllKinds()), isAll: true, has: []schema.GroupVersionKind{c}},
		"as many kinds as are allowed":             {kinds: KindsOf(numberedKinds(0, maxKinds)...), want: KindsOf(numberedKinds(0, maxKinds)...).List(), hasNot: []schema.GroupVersionKind{a}},
		"more kinds than are allowed are all":      {kinds: KindsOf(numberedKinds(0, maxKinds+1)...), isAll: true, has: []schema.GroupVersionKind{a}},
		"a union of more than are allowed has all": {kinds: KindsOf(numberedKinds(0, maxKinds)...).Union(KindsOf(a)), isAll: true, has: []schema.GroupVersionKind{b}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.kinds.List()); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
			if test.kinds.IsEmpty() != test.isEmpty || test.kinds.IsAll() != test.isAll {
				t.Errorf("empty: %t, all: %t", test.kinds.IsEmpty(), test.kinds.IsAll())
			}
			for _, kind := range test.has {
				if !test.kinds.Has(kind) {
					t.Errorf("%s is missing", kind)
				}
			}
			for _, kind := range test.hasNot {
				if test.kinds.Has(kind) {
					t.Errorf("the set has %s", kind)
				}
			}
		})
	}
}

func TestUnionKeepsItsOperands(t *testing.T) {
	first, second := KindsOf(kindNamed("A")), KindsOf(kindNamed("B"))
	first.Union(second)
	if len(first.List()) != 1 || len(second.List()) != 1 {
		t.Errorf("the operands became %v and %v", first.List(), second.List())
	}
}

// changingSource is a source that reports each change to one registered function.
type changingSource struct {
	staticSource
	notify func(Kinds)
}

func (c *changingSource) OnChange(notify func(Kinds)) (stop func()) {
	c.notify = notify
	return func() { c.notify = nil }
}

func TestInterpreterForwardsChangesOfItsSources(t *testing.T) {
	first, second := &changingSource{}, &changingSource{}
	var announced []string
	stop := New(first, staticSource{}, New(second)).OnChange(func(kinds Kinds) {
		announced = append(announced, fmt.Sprint(kinds.List()))
	})
	first.notify(KindsOf(kindNamed("A")))
	second.notify(KindsOf(kindNamed("B")))
	if diff := cmp.Diff([]string{"[example.io/v1, Kind=A]", "[example.io/v1, Kind=B]"}, announced); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	stop()
	if first.notify != nil || second.notify != nil {
		t.Error("a source is still observed")
	}
}
