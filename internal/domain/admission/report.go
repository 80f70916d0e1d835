package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// report collects the errors and warnings of one object.
type report struct {
	errors   field.ErrorList
	warnings []string
	// isGateDisabled is Options.IsGateDisabled.
	isGateDisabled func(gate string) bool
	// servedKinds and clusters are Options.ServedKinds and Options.ClusterNames.
	servedKinds func(kind schema.GroupVersionKind) *ServedKinds
	clusters    func(wanted []string) sets.Set[string]
}

func (r *report) addErrors(errors ...*field.Error) {
	r.errors = append(r.errors, errors...)
}

func (r *report) addWarning(path *field.Path, format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf("%s: %s", path, fmt.Sprintf(format, args...)))
}

// addInvalid adds an error for each of the messages, which a validation function of apimachinery
// returned.
func (r *report) addInvalid(path *field.Path, value any, messages []string) {
	for _, message := range messages {
		r.addErrors(field.Invalid(path, value, message))
	}
}

func (r *report) validateLabelKey(path *field.Path, name string) {
	r.addInvalid(path, name, validation.IsQualifiedName(name))
}

// uniqueValues contains the values that were already seen in a list, to report duplicates.
type uniqueValues[T comparable] map[T]bool

func (u uniqueValues[T]) add(r *report, path *field.Path, value T) {
	if u[value] {
		r.addErrors(field.Duplicate(path, value))
	}
	u[value] = true
}
