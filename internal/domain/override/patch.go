package override

import (
	"errors"
	"slices"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// edit is one operation of a JSON patch (RFC 6902), restricted to the three that
// policies can express: replace and remove need their target, add overwrites the
// member of an object and inserts into a list.
type edit struct {
	operator policyv1alpha1.OverriderOperator
	path     pointer
	value    any
}

// apply changes document in place where it can and returns the changed document,
// which is another value when the edit replaces it as a whole. The value becomes
// part of the document; it must not be used elsewhere.
func (e edit) apply(document any) (any, error) {
	changed, err := e.at(0, document)
	if err != nil {
		return nil, e.advise(err)
	}
	return changed, nil
}

func (e edit) at(depth int, node any) (any, error) {
	if depth == len(e.path) {
		return e.whole()
	}
	last := depth == len(e.path)-1
	switch parent := node.(type) {
	case map[string]any:
		if last {
			return parent, e.inObject(parent)
		}
		child, found := parent[e.path[depth]]
		if !found {
			return nil, e.path.missing(depth)
		}
		changed, err := e.at(depth+1, child)
		if err != nil {
			return nil, err
		}
		parent[e.path[depth]] = changed
		return parent, nil
	case []any:
		if last {
			return e.inList(parent)
		}
		index, err := e.path.index(depth, len(parent))
		if err != nil {
			return nil, err
		}
		if parent[index], err = e.at(depth+1, parent[index]); err != nil {
			return nil, err
		}
		return parent, nil
	default:
		return nil, e.path.leaf(depth, node)
	}
}

// whole applies the edit to the document itself.
func (e edit) whole() (any, error) {
	switch e.operator {
	case policyv1alpha1.OverriderOpAdd, policyv1alpha1.OverriderOpReplace:
		return e.value, nil
	case policyv1alpha1.OverriderOpRemove:
		return nil, mismatchf("", "name the field to remove", "a whole document cannot be removed")
	default:
		return nil, e.unknown()
	}
}

func (e edit) inObject(parent map[string]any) error {
	depth := len(e.path) - 1
	key := e.path[depth]
	_, found := parent[key]
	switch e.operator {
	case policyv1alpha1.OverriderOpAdd:
		parent[key] = e.value
	case policyv1alpha1.OverriderOpReplace:
		if !found {
			return e.path.missing(depth)
		}
		parent[key] = e.value
	case policyv1alpha1.OverriderOpRemove:
		if !found {
			return e.path.missing(depth)
		}
		delete(parent, key)
	default:
		return e.unknown()
	}
	return nil
}

func (e edit) inList(parent []any) (any, error) {
	depth := len(e.path) - 1
	if e.operator == policyv1alpha1.OverriderOpAdd {
		if e.path[depth] == "-" {
			return append(parent, e.value), nil
		}
		// One position more than there are elements: the end is a place too.
		index, err := e.path.index(depth, len(parent)+1)
		if err != nil {
			return nil, err
		}
		return slices.Insert(parent, index, e.value), nil
	}
	index, err := e.path.index(depth, len(parent))
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
		return nil, e.unknown()
	}
}

func (e edit) unknown() error {
	return mismatchf(e.path.String(), "use add, replace or remove", "unknown operator %q", e.operator)
}

// advise adds what usually helps with the operator to an error that has no remedy
// of its own.
func (e edit) advise(err error) error {
	var place *mismatchError
	if !errors.As(err, &place) || place.remedy != "" {
		return err
	}
	switch {
	case e.operator == policyv1alpha1.OverriderOpAdd:
		place.remedy = "add the object or list around it first"
	case e.operator == policyv1alpha1.OverriderOpReplace && place.orphan:
		place.remedy = `use operator "add" with the object or list around it, or select only resources that have the field`
	case e.operator == policyv1alpha1.OverriderOpReplace:
		place.remedy = `use operator "add", or select only resources that have the field`
	case e.operator == policyv1alpha1.OverriderOpRemove:
		place.remedy = "drop the entry, or select only resources that have the field"
	}
	return err
}
