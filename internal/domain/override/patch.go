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
func (p patchOperation) apply(document any) (any, error) {
	changed, err := p.applyAt(0, document)
	if err != nil {
		return nil, p.addRemedy(err)
	}
	return changed, nil
}

func (p patchOperation) applyAt(depth int, node any) (any, error) {
	if depth == len(p.path) {
		return p.applyToRoot()
	}
	last := depth == len(p.path)-1
	switch parent := node.(type) {
	case map[string]any:
		if last {
			return parent, p.applyToObject(parent)
		}
		child, found := parent[p.path[depth]]
		if !found {
			return nil, p.path.missingFieldError(depth)
		}
		changed, err := p.applyAt(depth+1, child)
		if err != nil {
			return nil, err
		}
		parent[p.path[depth]] = changed
		return parent, nil
	case []any:
		if last {
			return p.applyToList(parent)
		}
		index, err := p.path.listIndex(depth, len(parent))
		if err != nil {
			return nil, err
		}
		if parent[index], err = p.applyAt(depth+1, parent[index]); err != nil {
			return nil, err
		}
		return parent, nil
	default:
		return nil, p.path.noFieldsError(depth, node)
	}
}

// applyToRoot applies the operation to the root of the document.
func (p patchOperation) applyToRoot() (any, error) {
	switch p.operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		return p.value, nil
	case policyv1alpha1.OverriderOpRemove:
		return nil, mismatchf("", "name the field to remove", "a whole document cannot be removed")
	default:
		return nil, p.unknownOperatorError()
	}
}

func (p patchOperation) applyToObject(parent map[string]any) error {
	depth := len(p.path) - 1
	key := p.path[depth]
	_, found := parent[key]
	switch p.operator {
	case policyv1alpha1.OverriderOpAdd:
		parent[key] = p.value
	case policyv1alpha1.OverriderOpReplace:
		if !found {
			return p.path.missingFieldError(depth)
		}
		parent[key] = p.value
	case policyv1alpha1.OverriderOpRemove:
		if !found {
			return p.path.missingFieldError(depth)
		}
		delete(parent, key)
	default:
		return p.unknownOperatorError()
	}
	return nil
}

func (p patchOperation) applyToList(parent []any) (any, error) {
	depth := len(p.path) - 1
	if p.operator == policyv1alpha1.OverriderOpAdd {
		if p.path[depth] == "-" {
			return append(parent, p.value), nil
		}
		// The index may be one more than the last index, because add can insert after the last
		// element.
		index, err := p.path.listIndex(depth, len(parent)+1)
		if err != nil {
			return nil, err
		}
		return slices.Insert(parent, index, p.value), nil
	}
	index, err := p.path.listIndex(depth, len(parent))
	if err != nil {
		return nil, err
	}
	switch p.operator {
	case policyv1alpha1.OverriderOpReplace:
		parent[index] = p.value
		return parent, nil
	case policyv1alpha1.OverriderOpRemove:
		return slices.Delete(parent, index, index+1), nil
	default:
		return nil, p.unknownOperatorError()
	}
}

func (p patchOperation) unknownOperatorError() error {
	return mismatchf(p.path.String(), "use add, replace or remove", "unknown operator %q", p.operator)
}

// addRemedy adds the usual remedy for the operator to an error without a remedy.
func (p patchOperation) addRemedy(err error) error {
	var place *mismatchError
	if !errors.As(err, &place) || place.remedy != "" {
		return err
	}
	switch {
	case p.operator == policyv1alpha1.OverriderOpAdd:
		place.remedy = "add the object or list around it first"
	case p.operator == policyv1alpha1.OverriderOpReplace && place.parentMissing:
		place.remedy = `use operator "add" with the object or list around it, or select only resources that have the field`
	case p.operator == policyv1alpha1.OverriderOpReplace:
		place.remedy = `use operator "add", or select only resources that have the field`
	case p.operator == policyv1alpha1.OverriderOpRemove:
		place.remedy = "drop the entry, or select only resources that have the field"
	}
	return err
}
