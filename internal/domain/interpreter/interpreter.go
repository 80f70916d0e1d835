// Package interpreter determines, for objects of any kind, their replicas and resource requirements,
// dependencies, health, reflected status and aggregated status. It also revises replicas, and retains
// fields that the member owns.
//
// The rules for a kind come from sources, in order of precedence. Invariants:
//
//   - For each operation on a kind, only the first source with a rule is used. If its rule returns an
//     error, other sources are not called.
//   - Every kind has a rule for reflecting the status.
//   - A source's rules may change at any time. An Observable source reports the kinds whose rules have
//     changed, so that their objects are interpreted again.
//   - Rules do not modify their arguments. A rule that returns an object returns the argument itself if
//     nothing has changed, so that callers can compare pointers before a write.
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

// Rules holds the operations that a source supports for a kind. A nil function means that the operation
// is not supported. A template is the object in the control plane, and a member object is its copy in a
// member.
type Rules struct {
	// Replicas returns the template's desired number of replicas, and the requirements of one replica,
	// or nil if there are none. The caller sets the namespace of the requirements.
	Replicas func(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)

	// Components returns the template's components, each of which has its own Pod template.
	Components func(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error)

	// ReviseReplicas returns the template with the given number of replicas.
	ReviseReplicas func(ctx context.Context, template *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)

	// Retain returns the desired object with the fields that the member owns, copied from the observed
	// object.
	Retain func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// AggregateStatus returns the template with the status that is aggregated from the items. If the API
	// server rejects a direct transition to this status, the rule returns an intermediate status. After
	// it was stored, the next call returns the final status.
	AggregateStatus func(
		ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
	) (*unstructured.Unstructured, error)

	// ReflectStatus returns the part of the member object's status that is reflected to its Work, or nil
	// if there is none.
	ReflectStatus func(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error)

	// IsHealthy reports whether the member object is healthy.
	IsHealthy func(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error)

	// Dependencies returns references to the template's dependencies.
	Dependencies func(ctx context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Source provides rules for some kinds. It must be safe for concurrent use. A Source whose rules
// can change implements Observable.
type Source interface {
	// Rules returns the current rules for the exact group, version and kind. It does not block and has
	// no side effects. A caller that checks for a rule and then applies it must call Rules only once,
	// because the next call may return other rules.
	Rules(gvk schema.GroupVersionKind) Rules
}

// Interpreter combines sources. It is a Source and an Observable itself.
type Interpreter struct {
	sources []Source
}

// New returns an Interpreter that combines the sources, which are given in order of precedence.
func New(sources ...Source) *Interpreter {
	return &Interpreter{sources: sources}
}

// Rules returns, for each operation, the rule of the first source that has one. ReflectStatus is never
// nil: the default is ReflectWholeStatus. The results of Replicas, Components and Dependencies are
// validated with ValidateRequests and ValidateDependencies.
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

// withDefaults returns the rules with nil operations replaced by those of other.
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
