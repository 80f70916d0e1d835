package admission

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// stampPolicy gives a new policy its id, whatever id it came with: a policy made
// from a copy of another must not pass for it. A stored policy without an id was
// created while admission was off; it gets one with its next change, since it
// could neither claim anything nor be changed without.
func stampPolicy(policy metav1.Object, oldLabels map[string]string, label, finalizer string, newID func() string) {
	if oldLabels[label] != "" {
		return
	}
	setLabel(policy, label, newID())
	if policy.GetDeletionTimestamp() == nil && !slices.Contains(policy.GetFinalizers(), finalizer) {
		policy.SetFinalizers(append(slices.Clone(policy.GetFinalizers()), finalizer))
	}
}

// stampBinding gives a new binding its id, whatever id it came with: the Works and the
// objects of another binding are known by its id, and a copy or a backup of a binding
// has it too. What an earlier binding of the same name left is found by the name.
func stampBinding(binding metav1.Object, old runtime.Object, label string, newID func() string) {
	if old == nil {
		setLabel(binding, label, newID())
	}
}

// ensureID gives an object an id unless it has one.
func ensureID(object metav1.Object, label string, newID func() string) {
	if object.GetLabels()[label] == "" {
		setLabel(object, label, newID())
	}
}

func setLabel(object metav1.Object, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = make(map[string]string, 1)
	}
	labels[key] = value
	object.SetLabels(labels)
}

// permanentID wants the id to be there, and not to change once it is.
func (r *report) permanentID(labels, oldLabels map[string]string, label string) {
	path := field.NewPath("metadata", "labels").Key(label)
	id, oldID := labels[label], oldLabels[label]
	switch {
	case id == "":
		r.add(field.Required(path, "the permanent id is set on creation and stays"))
	case oldID != "" && id != oldID:
		r.add(field.Invalid(path, id, "the permanent id is immutable"))
	}
}

// bindingID wants the id of a stored binding not to change. One that was stored without
// an id, while admission was off, may get one.
func (r *report) bindingID(binding, old runtime.Object, label string) {
	stored, ok := old.(metav1.Object)
	changed, ok2 := binding.(metav1.Object)
	if !ok || !ok2 || stored.GetLabels()[label] == "" || changed.GetLabels()[label] == stored.GetLabels()[label] {
		return
	}
	r.add(field.Invalid(field.NewPath("metadata", "labels").Key(label), changed.GetLabels()[label],
		fmt.Sprintf("the permanent id is immutable; keep %q, or apply the binding without this label", stored.GetLabels()[label])))
}

// Deletable returns an error, fit for the user, when the object is protected
// against deletion.
func Deletable(object metav1.Object) error {
	if object.GetLabels()[workv1alpha2.DeletionProtectionLabel] != workv1alpha2.DeletionProtectionAlways {
		return nil
	}
	//nolint:staticcheck // existing clients look for the sentence with its capital
	return fmt.Errorf("This resource is protected: to delete it, first remove its label %s=%s",
		workv1alpha2.DeletionProtectionLabel, workv1alpha2.DeletionProtectionAlways)
}
