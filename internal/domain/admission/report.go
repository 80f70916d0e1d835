package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// report collects what there is to say about one object.
type report struct {
	errors   field.ErrorList
	warnings []string
	// disabled is Rules.Disabled.
	disabled func(gate string) bool
	// served and clusters are Rules.Served and Rules.Clusters.
	served   func(kind schema.GroupVersionKind) *Served
	clusters func(wanted []string) sets.Set[string]
}

func (r *report) add(errors ...*field.Error) {
	r.errors = append(r.errors, errors...)
}

func (r *report) warn(path *field.Path, format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// invalid adds one error for each message of a check of apimachinery.
func (r *report) invalid(path *field.Path, value any, messages []string) {
	for _, message := range messages {
		r.add(field.Invalid(path, value, message))
	}
}

// labelKey wants a name that can be a label key.
func (r *report) labelKey(path *field.Path, name string) {
	r.invalid(path, name, validation.IsQualifiedName(name))
}

// unique reports each value that was seen before.
type unique[T comparable] map[T]bool

func (u unique[T]) see(r *report, path *field.Path, value T) {
	if u[value] {
		r.add(field.Duplicate(path, value))
	}
	u[value] = true
}
