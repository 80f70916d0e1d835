package interpreter

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Operations are the operations on one kind, which a script or a webhook implements. The methods have the
// contracts of the fields with the same names in Rules.
type Operations interface {
	Replicas(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error)
	Components(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error)
	ReviseReplicas(ctx context.Context, template *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)
	Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error)
	AggregateStatus(
		ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
	) (*unstructured.Unstructured, error)
	ReflectStatus(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error)
	IsHealthy(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error)
	Dependencies(ctx context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error)
}

// RulesOf returns rules in which each operation may have another implementation. find returns the
// implementation of the given operation, or false if there is none.
func RulesOf[A Operations](find func(configv1alpha1.InterpreterOperation) (implementation A, found bool)) Rules {
	var rules Rules
	if a, found := find(configv1alpha1.InterpreterOperationInterpretReplica); found {
		rules.Replicas = a.Replicas
	}
	if a, found := find(configv1alpha1.InterpreterOperationInterpretComponent); found {
		rules.Components = a.Components
	}
	if a, found := find(configv1alpha1.InterpreterOperationReviseReplica); found {
		rules.ReviseReplicas = a.ReviseReplicas
	}
	if a, found := find(configv1alpha1.InterpreterOperationRetain); found {
		rules.Retain = a.Retain
	}
	if a, found := find(configv1alpha1.InterpreterOperationAggregateStatus); found {
		rules.AggregateStatus = a.AggregateStatus
	}
	if a, found := find(configv1alpha1.InterpreterOperationInterpretStatus); found {
		rules.ReflectStatus = a.ReflectStatus
	}
	if a, found := find(configv1alpha1.InterpreterOperationInterpretHealth); found {
		rules.IsHealthy = a.IsHealthy
	}
	if a, found := find(configv1alpha1.InterpreterOperationInterpretDependency); found {
		rules.Dependencies = a.Dependencies
	}
	return rules
}
