package jsonpointer

import "slices"

// Add sets a field of an object, or inserts an entry into a list. The token "-" appends to a list.
//
// Add, Replace and Remove are operations of JSON Patch (RFC 6902). They change the document in place
// and return it. If the pointer refers to the whole document, they return the new document instead.
// The value becomes part of the document and must not be used elsewhere. Errors are of type Error, and
// leave the document as it was.
func (p Pointer) Add(document, value any) (changed any, err error) {
	return p.edit(document, edit{
		ofRoot:   func() (any, error) { return value, nil },
		ofObject: func(object map[string]any, name string) error { object[name] = value; return nil },
		ofList: func(list []any, depth int) ([]any, error) {
			if p[depth] == "-" {
				return append(list, value), nil
			}
			// The index may be one more than the last index, because the entry can be inserted after
			// the last one.
			index, err := p.listIndex(depth, len(list), len(list)+1)
			if err != nil {
				return nil, err
			}
			return slices.Insert(list, index, value), nil
		},
	})
}

// Replace replaces a value that exists. See Add.
func (p Pointer) Replace(document, value any) (changed any, err error) {
	return p.edit(document, edit{
		ofRoot: func() (any, error) { return value, nil },
		ofObject: func(object map[string]any, name string) error {
			if _, found := object[name]; !found {
				return p.missingField(len(p) - 1)
			}
			object[name] = value
			return nil
		},
		ofList: func(list []any, depth int) ([]any, error) {
			index, err := p.listIndex(depth, len(list), len(list))
			if err != nil {
				return nil, err
			}
			list[index] = value
			return list, nil
		},
	})
}

// Remove removes a value that exists. A whole document cannot be removed. See Add.
func (p Pointer) Remove(document any) (changed any, err error) {
	return p.edit(document, edit{
		ofRoot: func() (any, error) {
			return nil, &Error{Remedy: "name the field to remove", problem: "a whole document cannot be removed"}
		},
		ofObject: func(object map[string]any, name string) error {
			if _, found := object[name]; !found {
				return p.missingField(len(p) - 1)
			}
			delete(object, name)
			return nil
		},
		ofList: func(list []any, depth int) ([]any, error) {
			index, err := p.listIndex(depth, len(list), len(list))
			if err != nil {
				return nil, err
			}
			return slices.Delete(list, index, index+1), nil
		},
	})
}

// edit changes a value in the object or list that contains it.
type edit struct {
	ofRoot   func() (any, error)
	ofObject func(object map[string]any, name string) error
	ofList   func(list []any, depth int) ([]any, error)
}

func (p Pointer) edit(document any, change edit) (any, error) {
	if len(p) == 0 {
		return change.ofRoot()
	}
	return p.editAt(0, document, change)
}

func (p Pointer) editAt(depth int, node any, change edit) (any, error) {
	last := depth == len(p)-1
	switch parent := node.(type) {
	case map[string]any:
		if last {
			return parent, change.ofObject(parent, p[depth])
		}
		child, found := parent[p[depth]]
		if !found {
			return nil, p.missingField(depth)
		}
		changed, err := p.editAt(depth+1, child, change)
		if err != nil {
			return nil, err
		}
		parent[p[depth]] = changed
		return parent, nil
	case []any:
		if last {
			return change.ofList(parent, depth)
		}
		index, err := p.listIndex(depth, len(parent), len(parent))
		if err != nil {
			return nil, err
		}
		changed, err := p.editAt(depth+1, parent[index], change)
		if err != nil {
			return nil, err
		}
		parent[index] = changed
		return parent, nil
	default:
		return nil, p.noFields(depth, node)
	}
}
