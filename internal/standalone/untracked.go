package standalone

import (
	"context"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// untrackedFieldsName is the name of the admission plugin.
const untrackedFieldsName = "KarmadaUntrackedFields"

// untrackedFields removes the managed fields of objects that a simulated cluster's controllers create, such
// as Pods and events. The controllers write these objects often, and tracking the fields' owners is a large
// part of each write's cost. Objects that a user or Karmada creates, or that are written by server-side
// apply, keep their managed fields.
type untrackedFields struct{ *admission.Handler }

var _ admission.MutationInterface = untrackedFields{}

// NewUntrackedFields returns the admission plugin of simulated clusters. With this plugin, a
// cluster stores no managed fields of objects that controllers create, except for objects that
// server-side apply writes.
func NewUntrackedFields() AdmissionPlugin {
	return AdmissionPlugin{Name: untrackedFieldsName, Register: func(plugins *admission.Plugins) {
		plugins.Register(untrackedFieldsName, func(io.Reader) (admission.Interface, error) {
			return untrackedFields{admission.NewHandler(admission.Create)}, nil
		})
	}}
}

// Admit implements admission.MutationInterface.
func (untrackedFields) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || metav1.GetControllerOf(object) == nil && a.GetKind().Kind != "Event" {
		return nil //nolint:nilerr // an object without metadata has no managed fields
	}
	if slices.ContainsFunc(object.GetManagedFields(), isApplied) {
		return nil
	}
	object.SetManagedFields(nil)
	return nil
}

func isApplied(fields metav1.ManagedFieldsEntry) bool {
	return fields.Operation == metav1.ManagedFieldsOperationApply
}
