package builtin

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// edit changes an object that others share: it is copied at the first change
// that makes a difference. Without one, object stays the original.
type edit struct {
	object *unstructured.Unstructured
	copied bool
}

// set puts a copy of value at path.
func (e *edit) set(value any, path ...string) error {
	current, found, err := unstructured.NestedFieldNoCopy(e.object.Object, path...)
	if err == nil && found && reflect.DeepEqual(current, value) {
		return nil
	}
	e.copy()
	if err := unstructured.SetNestedField(e.object.Object, value, path...); err != nil {
		return fmt.Errorf("setting %s: %w", strings.Join(path, "."), err)
	}
	return nil
}

// remove makes the field absent.
func (e *edit) remove(path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(e.object.Object, path...); err != nil || !found {
		return
	}
	e.copy()
	unstructured.RemoveNestedField(e.object.Object, path...)
}

func (e *edit) copy() {
	if !e.copied {
		e.object, e.copied = e.object.DeepCopy(), true
	}
}
