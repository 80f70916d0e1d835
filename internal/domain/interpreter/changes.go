package interpreter

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxKinds is the maximum number of kinds that a Kinds lists. It limits the memory for changes of
// rules that are not handled yet.
const maxKinds = 1000

// Kinds is a set of kinds. The set distinguishes versions, because rules apply to one group,
// version and kind. A set of more than 1000 kinds becomes the set of all kinds. The zero value is
// empty. A Kinds is immutable.
type Kinds struct {
	all    bool
	listed map[schema.GroupVersionKind]struct{}
}

// KindsOf returns the set of the listed kinds.
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

// AllKinds returns the set of all kinds. A source uses it for a rule that is not limited to listed
// kinds.
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

// List returns the kinds of the set, sorted. It returns nil for the set of all kinds.
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

// Observable is implemented by each Source whose rules can change. If a Source does not implement
// Observable, its rules are constant.
type Observable interface {
	// OnChange registers a function that is called with the kinds whose rules changed. When notify
	// is called, Rules already returns the new rules. Several goroutines may call notify at the
	// same time. notify must return at once and must not call the source. After stop returns,
	// notify is not called for further changes.
	OnChange(notify func(Kinds)) (stop func())
}

// OnChange implements Observable with the changes of all sources. It calls notify even if a source
// of higher precedence has a rule for the same operation.
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
