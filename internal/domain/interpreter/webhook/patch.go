package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"karmada.io/karmada/internal/domain/jsonedit"
)

const (
	// maxOperations is the maximum number of operations in a patch.
	maxOperations = 10_000
	// maxDepth is the maximum depth to which a patch may nest values.
	maxDepth = 1000
	// maxWork is the maximum number of bytes that a patch's operations may move and copy in total.
	// Without this limit, a short patch could double a value thousands of times.
	maxWork = 64 << 20
)

// patchOperation is an operation of a JSON Patch (RFC 6902).
type patchOperation struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`
}

// applyPatch applies a JSON Patch to a copy of the object. Values that the patch does not name remain the
// same Go values, so that their encoding does not change.
func applyPatch(object map[string]any, text []byte) (map[string]any, error) {
	var operations []patchOperation
	if err := json.Unmarshal(text, &operations); err != nil {
		return nil, fmt.Errorf("it is no JSON Patch (RFC 6902), a list of operations: %w", err)
	}
	if len(operations) > maxOperations {
		return nil, fmt.Errorf("it has %d operations, more than %d: replace the fields around them", len(operations), maxOperations)
	}
	p := patching{document: runtime.DeepCopyJSON(object), work: maxWork}
	for i := range operations {
		if err := p.apply(&operations[i]); err != nil {
			return nil, fmt.Errorf("operation %d, %s: %s", i, operations[i].describe(), describeFailure(err))
		}
	}
	patched, isObject := p.document.(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("the patched object is %s, not an object", jsonedit.TypeName(p.document))
	}
	return patched, nil
}

func (o *patchOperation) describe() string {
	text := fmt.Sprintf("op %q", limit(o.Op))
	if o.Path != nil {
		text += fmt.Sprintf(" path %q", limit(*o.Path))
	}
	return text
}

// describeFailure describes the error with its remedy. Names from the patch are shortened.
func describeFailure(err error) string {
	var missing *jsonedit.PointerError
	if errors.As(err, &missing) && missing.Remedy != "" {
		return limit(err.Error()) + ": " + missing.Remedy
	}
	return limit(err.Error())
}

// patching holds a document while a patch is applied to it.
type patching struct {
	document any
	// work is the remaining number of bytes that may be moved and copied.
	work int
}

// errTooMuchWork is the error for a patch that moves or copies too much.
var errTooMuchWork = fmt.Errorf("the patch moves or copies more than %d MiB: replace the fields around them", maxWork>>20)

// parsePointer parses an operation's path.
func parsePointer(text string) (jsonedit.Pointer, error) {
	if depth := strings.Count(text, "/"); depth > maxDepth {
		return nil, fmt.Errorf("a path has %d parts, more than %d", depth, maxDepth)
	}
	return jsonedit.ParsePointer(text)
}

func (p *patching) apply(o *patchOperation) error {
	if o.Path == nil {
		return errors.New("path is missing")
	}
	path, err := parsePointer(*o.Path)
	if err != nil {
		return err
	}
	switch o.Op {
	case "add", "replace", "test":
		value, err := o.value()
		if err != nil {
			return err
		}
		return p.applyValue(o.Op, path, value)
	case "remove":
		_, err := p.remove(path)
		return err
	case "move", "copy":
		return p.applyFrom(o, path)
	}
	return errors.New("the operation is unknown: use add, remove, replace, move, copy or test")
}

// value returns the operation's value, which is required.
func (o *patchOperation) value() (any, error) {
	if o.Value == nil {
		return nil, errors.New("value is missing")
	}
	var value any
	if err := utiljson.Unmarshal(o.Value, &value); err != nil {
		return nil, fmt.Errorf("decoding value: %w", err)
	}
	return value, nil
}

func (p *patching) applyValue(op string, path jsonedit.Pointer, value any) error {
	switch op {
	case "test":
		found, err := path.Get(p.document)
		if err != nil {
			return err
		}
		if !equalJSON(found, value) {
			return errors.New("the test failed: the value is another one")
		}
		return nil
	case "replace":
		return p.replace(path, value)
	default:
		return p.add(path, value)
	}
}

func (p *patching) applyFrom(o *patchOperation, path jsonedit.Pointer) error {
	if o.From == nil {
		return errors.New("from is missing")
	}
	from, err := parsePointer(*o.From)
	if err != nil {
		return err
	}
	value, err := from.Get(p.document)
	if err != nil {
		return err
	}
	if err := p.measure(value, len(path)); err != nil {
		return err
	}
	if o.Op == "copy" {
		return p.add(path, runtime.DeepCopyJSONValue(value))
	}
	if len(from) == len(path) && path.IsWithin(from) {
		return nil
	}
	if path.IsWithin(from) {
		return errors.New("a value cannot be moved into itself")
	}
	if value, err = p.remove(from); err != nil {
		return err
	}
	return p.add(path, value)
}

// measure subtracts the size of a value, which is placed at the given depth, from the remaining work. It
// returns an error if a limit is exceeded.
func (p *patching) measure(value any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("values would be nested deeper than %d", maxDepth)
	}
	if p.work -= 16; p.work < 0 {
		return errTooMuchWork
	}
	switch value := value.(type) {
	case string:
		p.work -= len(value)
	case map[string]any:
		for key, child := range value {
			p.work -= len(key)
			if err := p.measure(child, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, child := range value {
			if err := p.measure(child, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// add sets a field of an object, or inserts an entry into a list.
func (p *patching) add(path jsonedit.Pointer, value any) (err error) {
	if err := p.measure(value, len(path)); err != nil {
		return err
	}
	if err := p.measureShift(path); err != nil {
		return err
	}
	p.document, err = path.Add(p.document, value)
	return err
}

// replace replaces an existing value.
func (p *patching) replace(path jsonedit.Pointer, value any) (err error) {
	if err := p.measure(value, len(path)); err != nil {
		return err
	}
	p.document, err = path.Replace(p.document, value)
	return err
}

// remove removes an existing value and returns it.
func (p *patching) remove(path jsonedit.Pointer) (removed any, err error) {
	if removed, err = path.Get(p.document); err != nil {
		return nil, err
	}
	if err := p.measureShift(path); err != nil {
		return nil, err
	}
	p.document, err = path.Remove(p.document)
	return removed, err
}

// measureShift subtracts the list entries that an insertion or removal can move from the remaining work.
func (p *patching) measureShift(path jsonedit.Pointer) error {
	if len(path) == 0 {
		return nil
	}
	// The operation itself reports a missing parent.
	parent, _ := path[:len(path)-1].Get(p.document)
	if list, isList := parent.([]any); isList && path[len(path)-1] != "-" {
		p.work -= 16 * len(list)
	}
	if p.work < 0 {
		return errTooMuchWork
	}
	return nil
}
