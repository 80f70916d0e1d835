package builtin

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copyOnWrite changes a shared object without modifying the original: it copies the object at the
// first change. As long as there is no change, object is the original.
type copyOnWrite struct {
	object *unstructured.Unstructured
	copied bool
}

// set sets the field at path to a copy of value.
func (e *copyOnWrite) set(value any, path ...string) error {
	current, found, err := unstructured.NestedFieldNoCopy(e.object.Object, path...)
	if err == nil && found && reflect.DeepEqual(current, value) {
		return nil
	}
	e.ensureCopy()
	if err := unstructured.SetNestedField(e.object.Object, value, path...); err != nil {
		return fmt.Errorf("setting %s: %w", strings.Join(path, "."), err)
	}
	return nil
}

// remove deletes the field at path.
func (e *copyOnWrite) remove(path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(e.object.Object, path...); err != nil || !found {
		return
	}
	e.ensureCopy()
	unstructured.RemoveNestedField(e.object.Object, path...)
}

func (e *copyOnWrite) ensureCopy() {
	if !e.copied {
		e.object, e.copied = e.object.DeepCopy(), true
	}
}
