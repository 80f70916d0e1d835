// Package interpreter answers what has to be known about an object of any kind:
// how many replicas it wants and what one of them needs, what else it needs
// beside it, how to give it another number of replicas, what a member cluster
// owns of it, what of its status is worth collecting, how statuses of many
// clusters add up, and whether it is healthy.
//
// The answers come from sources, asked in order of precedence. Invariants:
//
//   - For each operation on a kind the first source that offers it answers
//     alone; its error is final, and no later source is asked.
//   - Collecting the status is offered for every kind.
//   - No rule modifies its arguments. A rule that answers with an object answers
//     with the very argument when there is nothing to change, so that callers
//     can compare pointers before they write.
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

// Rules are the operations that a source offers for one kind. A nil function is
// not offered. A template is the object in the control plane; a member object
// is what became of it in a member cluster.
type Rules struct {
	// Replicas returns the replicas a template asks for and what one of them
	// needs; the requirements are nil when it needs nothing in particular. Their
	// namespace is left to the caller.
	Replicas func(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)

	// Components returns the parts of a template that have pod templates of their
	// own.
	Components func(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error)

	// Revise returns the template with another number of replicas.
	Revise func(ctx context.Context, template *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)

	// Retain returns the desired object with the values that belong to the member
	// cluster taken from the observed one.
	Retain func(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)

	// Aggregate returns the template with a status made of those of its clusters. A
	// status that the API server does not accept after the present one may take two
	// steps: asked again with what was stored, the rule answers with the second.
	Aggregate func(ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error)

	// Status returns what of the status of a member object is collected; nil
	// when there is nothing to collect.
	Status func(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error)

	// Healthy reports whether a member object does what it is for.
	Healthy func(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error)

	// Dependencies returns references to what a template needs beside it.
	Dependencies func(ctx context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// Source offers rules for some kinds. It must be safe for concurrent use.
type Source interface {
	// Rules returns what is offered for exactly this group, version and kind.
	Rules(gvk schema.GroupVersionKind) Rules
}

// Interpreter unites sources; it is a Source itself.
type Interpreter struct {
	sources []Source
}

// Chain unites sources, the most preferred one first.
func Chain(sources ...Source) *Interpreter {
	return &Interpreter{sources: sources}
}

// Rules returns, for each operation, the rule of the first source that offers
// it. Status is never nil: WholeStatus steps in. Dependencies are checked by
// ValidateDependencies whatever their source.
func (i *Interpreter) Rules(gvk schema.GroupVersionKind) Rules {
	var rules Rules
	for _, source := range i.sources {
		rules = rules.or(source.Rules(gvk))
	}
	if rules.Status == nil {
		rules.Status = WholeStatus
	}
	if rules.Dependencies != nil {
		rules.Dependencies = checked(rules.Dependencies)
	}
	return rules
}

// or fills the operations that are not offered with those of other.
func (r Rules) or(other Rules) Rules {
	if r.Replicas == nil {
		r.Replicas = other.Replicas
	}
	if r.Components == nil {
		r.Components = other.Components
	}
	if r.Revise == nil {
		r.Revise = other.Revise
	}
	if r.Retain == nil {
		r.Retain = other.Retain
	}
	if r.Aggregate == nil {
		r.Aggregate = other.Aggregate
	}
	if r.Status == nil {
		r.Status = other.Status
	}
	if r.Healthy == nil {
		r.Healthy = other.Healthy
	}
	if r.Dependencies == nil {
		r.Dependencies = other.Dependencies
	}
	return r
}

// NotFound is the error of a caller that cannot do without an operation which no
// source offers for a kind.
func NotFound(operation configv1alpha1.InterpreterOperation, gvk schema.GroupVersionKind) error {
	return fmt.Errorf("%s interpreter for %s not found", operation, gvk)
}
