package standalone

import (
	"context"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// untrackedName is that of the admission plugin.
const untrackedName = "KarmadaUntrackedFields"

// untracked stores what the controllers of a simulated cluster make, such as Pods and
// events, without managed fields. They alone write it, again and again, and the
// bookkeeping of who owns which field is a good part of what that costs. What a user
// makes, or Karmada, has its managed fields as in any cluster, and so has what is
// applied on the server's side.
type untracked struct{ *admission.Handler }

var _ admission.MutationInterface = untracked{}

// Untracked is the plugin of simulated clusters: they store no managed fields of what
// controllers make, unless it is applied on the server's side.
func Untracked() AdmissionPlugin {
	return AdmissionPlugin{Name: untrackedName, Register: func(plugins *admission.Plugins) {
		plugins.Register(untrackedName, func(io.Reader) (admission.Interface, error) {
			return untracked{admission.NewHandler(admission.Create)}, nil
		})
	}}
}

// Admit implements admission.MutationInterface.
func (untracked) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, err := meta.Accessor(a.GetObject())
	if err != nil || metav1.GetControllerOf(object) == nil && a.GetKind().Kind != "Event" {
		return nil //nolint:nilerr // what has no metadata has no managed fields
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
