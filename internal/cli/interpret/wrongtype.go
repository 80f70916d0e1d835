package interpret

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// findWrongType returns an error that names the first field of an object whose type is not that of
// the Go value, or nil if there is none. into must be a pointer.
func findWrongType(object map[string]any, into any) error {
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if !errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil
	}
	return describeWrongType(err)
}

// describeWrongType returns an error of a JSON decoder without the terms of Go: "applied is a string,
// not a boolean". It returns other errors as they are.
func describeWrongType(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) || wrong.Field == "" {
		return err
	}
	return fmt.Errorf("%s is %s, not %s", wrong.Field, describeValue(wrong.Value), describeType(wrong.Type))
}

// describeValue returns the type of a value that encoding/json describes, such as "number 4.5".
func describeValue(value string) string {
	switch value {
	case "array":
		return "a list"
	case "bool":
		return "a boolean"
	case "object":
		return "an object"
	}
	if number, ok := strings.CutPrefix(value, "number "); ok {
		return "the number " + number
	}
	return "a " + value
}

func describeType(wanted reflect.Type) string {
	for wanted.Kind() == reflect.Pointer {
		wanted = wanted.Elem()
	}
	switch wanted.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "an integer"
	}
}
