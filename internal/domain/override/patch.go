package override

import (
	"errors"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// patchOperation is an operation of a JSON patch (RFC 6902) with one of the three operators that
// policies support. replace and remove require an existing target. add overwrites an object's field or
// inserts into a list.
type patchOperation struct {
	operator policyv1alpha1.OverriderOperator
	path     jsonedit.Pointer
	value    any
}

// apply modifies the document in place and returns it, or the new document if the operation replaces the
// whole one. The operation's value becomes part of the document.
func (p patchOperation) apply(document any) (changed any, err error) {
	switch p.operator {
	case policyv1alpha1.OverriderOpAdd:
		changed, err = p.path.Add(document, p.value)
	case policyv1alpha1.OverriderOpReplace:
		changed, err = p.path.Replace(document, p.value)
	case policyv1alpha1.OverriderOpRemove:
		changed, err = p.path.Remove(document)
	default:
		err = p.unknownOperatorError()
	}
	if err != nil {
		return nil, p.addRemedy(err)
	}
	return changed, nil
}

func (p patchOperation) unknownOperatorError() error {
	return mismatchf(p.path.String(), "use add, replace or remove", "unknown operator %q", p.operator)
}

// addRemedy adds the operator's usual remedy to an error that has none.
func (p patchOperation) addRemedy(err error) error {
	var missing *jsonedit.PointerError
	if !errors.As(err, &missing) || missing.Remedy != "" {
		return err
	}
	switch {
	case p.operator == policyv1alpha1.OverriderOpAdd:
		missing.Remedy = "add the object or list around it first"
	case p.operator == policyv1alpha1.OverriderOpReplace && missing.ParentMissing:
		missing.Remedy = `use operator "add" with the object or list around it, or select only resources that have the field`
	case p.operator == policyv1alpha1.OverriderOpReplace:
		missing.Remedy = `use operator "add", or select only resources that have the field`
	case p.operator == policyv1alpha1.OverriderOpRemove:
		missing.Remedy = "drop the entry, or select only resources that have the field"
	}
	return err
}
