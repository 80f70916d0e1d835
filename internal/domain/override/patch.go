package override

import (
	"errors"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// patchOperation is one operation of a JSON patch (RFC 6902), restricted to the three
// operators of policies. Replace and remove require an existing target. Add overwrites
// the field of an object and inserts into a list.
type patchOperation struct {
	operator policyv1alpha1.OverriderOperator
	path     pointer
	value    any
}

// apply changes document in place and returns it. If the operation replaces the whole document, it
// returns the new document instead. The value of the operation becomes part of the document and
// must not be used elsewhere.
func (e patchOperation) apply(document any) (any, error) {
	changed, err := e.applyAt(0, document)
	if err != nil {
		return nil, e.addRemedy(err)
	}
	return changed, nil
}

func (e patchOperation) applyAt(depth int, node any) (any, error) {
	if depth == len(e.path) {
		return e.applyToRoot()
	}
	last := depth == len(e.path)-1
	switch parent := node.(type) {
	case map[string]any:
		if last {
			return parent, e.applyToObject(parent)
		}
		child, found := parent[e.path[depth]]
		if !found {
			return nil, e.path.missingFieldError(depth)
		}
		changed, err := e.applyAt(depth+1, child)
		if err != nil {
			return nil, err
		}
		parent[e.path[depth]] = changed
		return parent, nil
	case []any:
		if last {
			return e.applyToList(parent)
		}
		index, err := e.path.listIndex(depth, len(parent))
		if err != nil {
			return nil, err
		}
		if parent[index], err = e.applyAt(depth+1, parent[index]); err != nil {
			return nil, err
		}
		return parent, nil
	default:
		return nil, e.path.noFieldsError(depth, node)
	}
}

// applyToRoot applies the operation to the root of the document.
func (e patchOperation) applyToRoot() (any, error) {
	switch e.operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		return e.value, nil
	case policyv1alpha1.OverriderOpRemove:
		return nil, mismatchf("", "name the field to remove", "a whole document cannot be removed")
	default:
		return nil, e.unknownOperatorError()
	}
}

func (e patchOperation) applyToObject(parent map[string]any) error {
	depth := len(e.path) - 1
	key := e.path[depth]
	_, found := parent[key]
	switch e.operator {
	case policyv1alpha1.OverriderOpAdd:
		parent[key] = e.value
	case policyv1alpha1.OverriderOpReplace:
		if !found {
			return e.path.missingFieldError(depth)
		}
		parent[key] = e.value
	case policyv1alpha1.OverriderOpRemove:
		if !found {
			return e.path.missingFieldError(depth)
		}
		delete(parent, key)
	default:
		return e.unknownOperatorError()
	}
	return nil
}

func (e patchOperation) applyToList(parent []any) (any, error) {
	depth := len(e.path) - 1
	if e.operator == policyv1alpha1.OverriderOpAdd {
		if e.path[depth] == "-" {
			return append(parent, e.value), nil
		}
		// The index may be one more than the last index, because add can insert after the last
		// element.
		index, err := e.path.listIndex(depth, len(parent)+1)
		if err != nil {
			return nil, err
		}
		return slices.Insert(parent, index, e.value), nil
	}
	index, err := e.path.listIndex(depth, len(parent))
	if err != nil {
		return nil, err
	}
	switch e.operator {
	case policyv1alpha1.OverriderOpReplace:
		parent[index] = e.value
		return parent, nil
	case policyv1alpha1.OverriderOpRemove:
		return slices.Delete(parent, index, index+1), nil
	default:
		return nil, e.unknownOperatorError()
	}
}

func (e patchOperation) unknownOperatorError() error {
	return mismatchf(e.path.String(), "use add, replace or remove", "unknown operator %q", e.operator)
}

// addRemedy adds the usual remedy for the operator to an error without a remedy.
func (e patchOperation) addRemedy(err error) error {
	var place *mismatchError
	if !errors.As(err, &place) || place.remedy != "" {
		return err
	}
	switch {
	case e.operator == policyv1alpha1.OverriderOpAdd:
		place.remedy = "add the object or list around it first"
	case e.operator == policyv1alpha1.OverriderOpReplace && place.parentMissing:
		place.remedy = `use operator "add" with the object or list around it, or select only resources that have the field`
	case e.operator == policyv1alpha1.OverriderOpReplace:
		place.remedy = `use operator "add", or select only resources that have the field`
	case e.operator == policyv1alpha1.OverriderOpRemove:
		place.remedy = "drop the entry, or select only resources that have the field"
	}
	return err
}
