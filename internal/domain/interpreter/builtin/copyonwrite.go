package builtin

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// copyOnWrite modifies a copy of a shared object, which it creates at the first change. Until then, object
// is the original.
type copyOnWrite struct {
	object *unstructured.Unstructured
	copied bool
}

// set sets the field at path to a copy of value.
func (c *copyOnWrite) set(value any, path ...string) error {
	current, found, err := unstructured.NestedFieldNoCopy(c.object.Object, path...)
	if err == nil && found && reflect.DeepEqual(current, value) {
		return nil
	}
	c.ensureCopy()
	if err := unstructured.SetNestedField(c.object.Object, value, path...); err != nil {
		return fmt.Errorf("setting %s: %w", strings.Join(path, "."), err)
	}
	return nil
}

// remove deletes the field at path.
func (c *copyOnWrite) remove(path ...string) {
	if _, found, err := unstructured.NestedFieldNoCopy(c.object.Object, path...); err != nil || !found {
		return
	}
	c.ensureCopy()
	unstructured.RemoveNestedField(c.object.Object, path...)
}

func (c *copyOnWrite) ensureCopy() {
	if !c.copied {
		c.object, c.copied = c.object.DeepCopy(), true
	}
}
