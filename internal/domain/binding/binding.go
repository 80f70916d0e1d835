// Package binding provides the name and the target clusters of a ResourceBinding or
// ClusterResourceBinding, with the same code for both scopes.
//
// The same code handles bindings of both scopes: code that works on bindings takes an Object. The
// two kinds differ in labels and annotations. The functions of this package return the labels and
// annotations of either kind.
//
// Invariants: every function is pure and does not change the binding. A target (TargetClusters) is
// always expected (ExpectedClusters). An expected cluster need not be a target: during a graceful
// eviction the Work stays in the old cluster.
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
	// BindingSpec returns the spec itself, not a copy.
	BindingSpec() *workv1alpha2.ResourceBindingSpec
	// BindingStatus returns the status itself, not a copy.
	BindingStatus() *workv1alpha2.ResourceBindingStatus
}

var (
	_ Object = (*workv1alpha2.ResourceBinding)(nil)
	_ Object = (*workv1alpha2.ClusterResourceBinding)(nil)
)

// New returns an empty ResourceBinding if namespaced is true, else an empty
// ClusterResourceBinding.
func New(namespaced bool) Object {
	if namespaced {
		return &workv1alpha2.ResourceBinding{}
	}
	return &workv1alpha2.ClusterResourceBinding{}
}

// Copy returns a deep copy of a binding.
func Copy(of Object) Object { return of.DeepCopyObject().(Object) }

// ShallowCopy returns a binding whose fields can be replaced without a change of the original. The
// content of its maps, lists and pointers is shared and must not be modified.
func ShallowCopy(of Object) Object {
	switch bound := of.(type) {
	case *workv1alpha2.ResourceBinding:
		shared := *bound
		return &shared
	case *workv1alpha2.ClusterResourceBinding:
		shared := *bound
		return &shared
	default:
		return Copy(of)
	}
}

// IsNamespaced reports whether a binding is namespaced. It tests the type of the binding, so it
// also works for objects without a namespace or name.
func IsNamespaced(obj Object) bool {
	_, cluster := obj.(*workv1alpha2.ClusterResourceBinding)
	return !cluster
}
