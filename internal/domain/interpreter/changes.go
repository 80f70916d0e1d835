package interpreter

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxKinds is the maximum number of kinds in a Kinds, which bounds the memory for pending changes.
const maxKinds = 1000

// Kinds is an immutable set of kinds. Versions of a kind are distinguished, because rules apply to a
// group, version and kind. A set of more than maxKinds kinds becomes the set of all kinds. The zero
// value is empty.
type Kinds struct {
	all    bool
	listed map[schema.GroupVersionKind]struct{}
}

// KindsOf returns the set of the given kinds.
func KindsOf(kinds ...schema.GroupVersionKind) Kinds {
	listed := make(map[schema.GroupVersionKind]struct{}, len(kinds))
	for _, kind := range kinds {
		listed[kind] = struct{}{}
	}
	if len(listed) > maxKinds {
		return AllKinds()
	}
	return Kinds{listed: listed}
}

// AllKinds returns the set of all kinds.
func AllKinds() Kinds { return Kinds{all: true} }

// IsEmpty reports whether the set contains no kind.
func (k Kinds) IsEmpty() bool { return !k.all && len(k.listed) == 0 }

// IsAll reports whether the set contains all kinds.
func (k Kinds) IsAll() bool { return k.all }

// Has reports whether the set contains the kind.
func (k Kinds) Has(kind schema.GroupVersionKind) bool {
	_, isListed := k.listed[kind]
	return k.all || isListed
}

// List returns the set's kinds, sorted. It returns nil for the set of all kinds.
func (k Kinds) List() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(k.listed), func(a, b schema.GroupVersionKind) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Union returns the kinds of both sets.
func (k Kinds) Union(other Kinds) Kinds {
	listed := make(map[schema.GroupVersionKind]struct{}, len(k.listed)+len(other.listed))
	maps.Copy(listed, k.listed)
	maps.Copy(listed, other.listed)
	if k.all || other.all || len(listed) > maxKinds {
		return AllKinds()
	}
	return Kinds{listed: listed}
}

// Observable is implemented by each Source whose rules can change. The rules of other sources are
// constant.
type Observable interface {
	// OnChange registers a function to call with the kinds whose rules have changed. When notify is
	// called, Rules already returns the new rules. notify must be safe for concurrent use, must not
	// block and must not call the source. After stop has returned, notify is not called for further
	// changes.
	OnChange(notify func(Kinds)) (stop func())
}

// OnChange implements Observable. It reports the changes of all sources, even of rules that a source of
// higher precedence overrides.
func (i *Interpreter) OnChange(notify func(Kinds)) (stop func()) {
	var stops []func()
	for _, source := range i.sources {
		if changing, ok := source.(Observable); ok {
			stops = append(stops, changing.OnChange(notify))
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}
