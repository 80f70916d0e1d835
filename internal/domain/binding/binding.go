// Package binding answers: how is a ResourceBinding or a ClusterResourceBinding
// called, and in which clusters must its template be?
//
// Both scopes are one thing here. Code that works on bindings takes an Object
// and never asks which of the two it has, except through the functions of this
// package that name the marks in which they differ.
//
// Invariants: every function is pure and leaves the binding as it was; a target
// (Targets) is always expected (Expected), but an expected cluster need not be a
// target: while a workload is evicted gracefully its Work stays where it was.
package binding

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Object is a ResourceBinding or a ClusterResourceBinding.
type Object interface {
	metav1.Object
	runtime.Object
	// BindingSpec is the live spec, not a copy.
	BindingSpec() *workv1alpha2.ResourceBindingSpec
	// BindingStatus is the live status, not a copy.
	BindingStatus() *workv1alpha2.ResourceBindingStatus
}

var (
	_ Object = (*workv1alpha2.ResourceBinding)(nil)
	_ Object = (*workv1alpha2.ClusterResourceBinding)(nil)
)

// New is an empty ResourceBinding when namespaced, else an empty
// ClusterResourceBinding.
func New(namespaced bool) Object {
	if namespaced {
		return &workv1alpha2.ResourceBinding{}
	}
	return &workv1alpha2.ClusterResourceBinding{}
}

// Copy is a deep copy of a binding, of the same scope.
func Copy(of Object) Object { return of.DeepCopyObject().(Object) }

// Namespaced tells the scope of a binding by its type, so that it also holds for
// objects that have no name yet.
func Namespaced(obj Object) bool {
	_, cluster := obj.(*workv1alpha2.ClusterResourceBinding)
	return !cluster
}
