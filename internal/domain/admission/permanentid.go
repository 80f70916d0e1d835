package admission

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// setPolicyID sets a new ID on a new policy. It replaces an ID that the user sets, because a policy's
// copy must not have the original policy's ID. A stored policy has no ID if it was created while
// admission was disabled. Such a policy gets an ID with its next update, because without an ID it could
// not claim templates and its updates would be rejected.
func setPolicyID(policy metav1.Object, oldLabels map[string]string, label, finalizer string, newID func() string) {
	if oldLabels[label] != "" {
		return
	}
	setLabel(policy, label, newID())
	if policy.GetDeletionTimestamp() == nil && !slices.Contains(policy.GetFinalizers(), finalizer) {
		policy.SetFinalizers(append(slices.Clone(policy.GetFinalizers()), finalizer))
	}
}

// setBindingID sets a new ID on a new binding. It replaces an ID that the user sets, because a
// binding's copy or backup contains the original binding's ID, which identifies the original binding's
// Works and member objects. The Works of an earlier binding with the same name are found by the
// binding's name instead of this ID.
func setBindingID(binding metav1.Object, old runtime.Object, label string, newID func() string) {
	if old == nil {
		setLabel(binding, label, newID())
	}
}

// ensureID sets an ID unless the object has one.
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

// validatePermanentID validates that the ID is set and does not change.
func (r *report) validatePermanentID(labels, oldLabels map[string]string, label string) {
	path := field.NewPath("metadata", "labels").Key(label)
	id, oldID := labels[label], oldLabels[label]
	switch {
	case id == "":
		r.addErrors(field.Required(path, "the permanent id is set on creation and cannot be removed"))
	case oldID != "" && id != oldID:
		r.addErrors(field.Invalid(path, id, "the permanent id is immutable"))
	}
}

// validateBindingID validates that a stored binding's ID does not change. A binding that was stored
// without an ID, while admission was disabled, may get an ID.
func (r *report) validateBindingID(binding, old runtime.Object, label string) {
	stored, ok := old.(metav1.Object)
	changed, ok2 := binding.(metav1.Object)
	if !ok || !ok2 || stored.GetLabels()[label] == "" || changed.GetLabels()[label] == stored.GetLabels()[label] {
		return
	}
	r.addErrors(field.Invalid(field.NewPath("metadata", "labels").Key(label), changed.GetLabels()[label],
		fmt.Sprintf("the permanent id is immutable; keep %q, or apply the binding without this label", stored.GetLabels()[label])))
}

// CheckDeletionProtection returns an error for the user if the object is protected against deletion.
func CheckDeletionProtection(object metav1.Object) error {
	if object.GetLabels()[workv1alpha2.DeletionProtectionLabel] != workv1alpha2.DeletionProtectionAlways {
		return nil
	}
	//nolint:staticcheck // existing clients look for the sentence with its capital
	return fmt.Errorf("This resource is protected: to delete it, first remove its label %s=%s",
		workv1alpha2.DeletionProtectionLabel, workv1alpha2.DeletionProtectionAlways)
}
