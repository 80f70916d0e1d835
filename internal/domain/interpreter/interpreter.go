// Package interpreter interprets objects of any kind. It returns their number of replicas and the
// requirements of one replica, their dependencies, the status to reflect, the aggregated status of
// many clusters, and their health. It also changes the number of replicas, and retains the fields
// that the member cluster owns.
//
// The rules come from sources, in order of precedence. Invariants:
//
//   - For each operation on a kind, only the first source that has a rule is used. If this rule
//     returns an error, later sources are not called.
//   - Every kind has a rule for reflecting the status.
//   - The rules of a source may change at any time. An Observable reports the kinds whose rules
//     changed, so that objects of these kinds can be interpreted again.
//   - No rule modifies its arguments. A rule that returns an object returns the argument itself if
//     there is no change, so that callers can compare pointers before a write.
package interpreter

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Rules holds the operations that a source supports for one kind. A nil function means that the
// operation is not supported. A template is the object in the control plane. A member object is the
// copy of the template in a member cluster.
type Rules struct {
	// Replicas returns the desired number of replicas of a template and the requirements of one
	// replica. The requirements are nil if there are none. The caller sets the namespace of the
	// requirements.
	Replicas func(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)

	// Components returns the components of a template, each with its own pod template.
	Components func(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error)

	// ReviseReplicas returns the template with another number of replicas.
	ReviseReplicas func(ctx context.Context, template *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)

	// Retain returns the desired object with the values that the member cluster owns. These values
	// are copied from the observed object.
	Retain func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// AggregateStatus returns the template with the aggregated status of its clusters. If the API
	// server rejects a direct transition to that status, the rule returns an intermediate status.
	// If the intermediate status is stored, the next call returns the final status.
	AggregateStatus func(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)

	// ReflectStatus returns the part of the status of a member object that is reflected, or nil if
	// there is none.
	ReflectStatus func(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error)

	// IsHealthy reports whether a member object is healthy.
	IsHealthy func(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error)

	// Dependencies returns references to the dependencies of a template.
	Dependencies func(ctx context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Source provides rules for some kinds. It must be safe for concurrent use. A Source whose rules
// can change implements Observable.
type Source interface {
	// Rules returns the current rules for exactly this group, version and kind. It does not wait
	// and has no side effects. Two calls may return different rules. So a caller that checks
	// whether a rule exists and then applies the rule must call Rules only once.
	Rules(gvk schema.GroupVersionKind) Rules
}

// Interpreter combines sources. It is a Source and an Observable itself.
type Interpreter struct {
	sources []Source
}

// New combines sources, in order of precedence.
func New(sources ...Source) *Interpreter {
	return &Interpreter{sources: sources}
}

// Rules returns, for each operation, the rule of the first source that has a rule for the
// operation. ReflectStatus is never nil: the default is ReflectWholeStatus. The results
// of the rules Replicas, Components and Dependencies of every source are validated with
// ValidateRequests and ValidateDependencies.
func (i *Interpreter) Rules(gvk schema.GroupVersionKind) Rules {
	var rules Rules
	for _, source := range i.sources {
		rules = rules.withDefaults(source.Rules(gvk))
	}
	if rules.ReflectStatus == nil {
		rules.ReflectStatus = ReflectWholeStatus
	}
	if rules.Replicas != nil {
		rules.Replicas = withValidRequests(rules.Replicas)
	}
	if rules.Components != nil {
		rules.Components = withValidComponents(rules.Components)
	}
	if rules.Dependencies != nil {
		rules.Dependencies = withValidation(rules.Dependencies)
	}
	return rules
}

// withDefaults replaces the operations that are nil by the operations of other.
func (r Rules) withDefaults(other Rules) Rules {
	if r.Replicas == nil {
		r.Replicas = other.Replicas
	}
	if r.Components == nil {
		r.Components = other.Components
	}
	if r.ReviseReplicas == nil {
		r.ReviseReplicas = other.ReviseReplicas
	}
	if r.Retain == nil {
		r.Retain = other.Retain
	}
	if r.AggregateStatus == nil {
		r.AggregateStatus = other.AggregateStatus
	}
	if r.ReflectStatus == nil {
		r.ReflectStatus = other.ReflectStatus
	}
	if r.IsHealthy == nil {
		r.IsHealthy = other.IsHealthy
	}
	if r.Dependencies == nil {
		r.Dependencies = other.Dependencies
	}
	return r
}

// NewNotFoundError returns the error for an operation that a kind requires but no source supports.
func NewNotFoundError(operation configv1alpha1.InterpreterOperation, gvk schema.GroupVersionKind) error {
	return fmt.Errorf("%s interpreter for %s not found", operation, gvk)
}
