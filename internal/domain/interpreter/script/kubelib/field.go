package kubelib

import (
	"fmt"

	"karmada.io/karmada/internal/domain/interpreter/script/stdlib"
)

// The functions of this file read fields of objects. An absent field and null are the zero value. For
// a value of a wrong type, they return an error with the path of the field.

func objectField(object map[string]any, path, name string) (map[string]any, error) {
	value := object[name]
	if value == nil {
		return nil, nil
	}
	return asObject(value, join(path, name))
}

func asObject(value any, path string) (map[string]any, error) {
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("%s is a %s, not an object", path, typeName(value))
	}
	return object, nil
}

// listField returns a list. An empty table of a script is an empty map here, and may stand for a
// list.
func listField(object map[string]any, path, name string) ([]any, error) {
	value := object[name]
	if empty, ok := value.(map[string]any); ok && len(empty) == 0 {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("%s is a %s, not a list", join(path, name), typeName(value))
	}
	return list, nil
}

func stringField(object map[string]any, path, name string) (string, error) {
	text, ok := object[name].(string)
	if !ok && object[name] != nil {
		return "", fmt.Errorf("%s is a %s, not a string", join(path, name), typeName(object[name]))
	}
	return text, nil
}

func stringMap(host stdlib.Host, object map[string]any, path, name string) (map[string]string, error) {
	fields, err := objectField(object, path, name)
	if err != nil || fields == nil {
		return nil, err
	}
	host.Step(len(fields))
	host.Allocate(valueBytes * len(fields))
	texts := make(map[string]string, len(fields))
	for key := range fields {
		if texts[key], err = stringField(fields, join(path, name), key); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// typeName returns the type of a value for messages.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64, float64:
		return "number"
	case []any:
		return "list"
	default:
		return "table"
	}
}
