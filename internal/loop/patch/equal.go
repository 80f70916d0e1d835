package patch

import (
	"bytes"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var semanticEqualities = withRawComparison(equality.Semantic.Copy())

// Equal reports whether two objects of one type, or two parts of them, are equal. It treats nil and
// empty values as equal, and equal quantities in different notations. It compares raw content as
// text, because a comparison byte by byte through reflection would be most of the cost for two
// Works.
func Equal(a, b any) bool { return semanticEqualities.DeepEqual(a, b) }

func withRawComparison(e conversion.Equalities) conversion.Equalities {
	err := e.AddFunc(func(a, b runtime.RawExtension) bool {
		return bytes.Equal(a.Raw, b.Raw) && reflect.DeepEqual(a.Object, b.Object)
	})
	if err != nil {
		// AddFunc returns an error only if the function has a wrong signature. equality.Semantic
		// gives the same results, but is slower.
		return equality.Semantic
	}
	return e
}

// hasEqualContent reports whether two objects have the same type and the same fields, except for the
// metadata and the status.
func hasEqualContent(before, after client.Object) bool {
	return haveEqualFields(before, after, func(field string) bool {
		return field != "TypeMeta" && field != "ObjectMeta" && field != "metadata" && !isStatus(field)
	})
}

// hasEqualStatus reports whether two objects have the same type and the same status.
func hasEqualStatus(before, after client.Object) bool {
	return haveEqualFields(before, after, isStatus)
}

func isStatus(field string) bool { return field == "Status" || field == "status" }

// haveEqualFields compares the selected top-level fields of two objects. It selects fields by their
// names in Go, or by their names in JSON if the objects are unstructured.
func haveEqualFields(before, after client.Object, isSelected func(field string) bool) bool {
	left, right := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	if left.Type() != right.Type() {
		return false
	}
	if older, ok := before.(*unstructured.Unstructured); ok {
		newer, _ := after.(*unstructured.Unstructured)
		return containsFields(newer.Object, older.Object, isSelected) && containsFields(older.Object, newer.Object, isSelected)
	}
	for i := range left.NumField() {
		if isSelected(left.Type().Field(i).Name) && !Equal(left.Field(i).Addr().Interface(), right.Field(i).Addr().Interface()) {
			return false
		}
	}
	return true
}

// containsFields reports whether content has every selected field of part, with an equal value.
func containsFields(content, part map[string]any, isSelected func(field string) bool) bool {
	for field, value := range part {
		if !isSelected(field) {
			continue
		}
		if other, found := content[field]; !found || !Equal(value, other) {
			return false
		}
	}
	return true
}

// differingFields returns copies of two objects of one type, without the status and most fields that are
// equal in both. Only the newer copy has a resourceVersion, which is that of before. The copies share all
// other fields with the objects.
func differingFields(before, after client.Object) (older, newer any) {
	if left, ok := before.(*unstructured.Unstructured); ok {
		right, _ := after.(*unstructured.Unstructured)
		return differingContent(left, right)
	}
	left, right := reflect.New(reflect.TypeOf(before).Elem()), reflect.New(reflect.TypeOf(after).Elem())
	left.Elem().Set(reflect.ValueOf(before).Elem())
	right.Elem().Set(reflect.ValueOf(after).Elem())
	for _, copied := range []reflect.Value{left, right} {
		if status := copied.Elem().FieldByName("Status"); status.IsValid() {
			status.SetZero()
		}
	}
	clearEqualFields(left.Elem(), right.Elem(), 1)
	setVersion(left.Interface(), "")
	setVersion(right.Interface(), before.GetResourceVersion())
	return left.Interface(), right.Interface()
}

func setVersion(copied any, version string) {
	if object, ok := copied.(client.Object); ok {
		object.SetResourceVersion(version)
	}
}

// clearEqualFields clears the fields that are equal in both structs, and in nested structs down to the given
// depth.
func clearEqualFields(left, right reflect.Value, depth int) {
	for i := range left.NumField() {
		older, newer := left.Field(i), right.Field(i)
		switch {
		case !older.CanSet(): // the field is not exported
		case Equal(older.Addr().Interface(), newer.Addr().Interface()):
			older.SetZero()
			newer.SetZero()
		case depth > 0 && older.Kind() == reflect.Struct:
			clearEqualFields(older, newer, depth-1)
		}
	}
}

func differingContent(before, after *unstructured.Unstructured) (older, newer map[string]any) {
	older, newer = maps.Clone(before.Object), maps.Clone(after.Object)
	for field, value := range before.Object {
		if other, found := after.Object[field]; field == "status" || field != "metadata" && found && Equal(value, other) {
			delete(older, field)
			delete(newer, field)
		}
	}
	delete(newer, "status")
	for _, content := range []map[string]any{older, newer} {
		metadata, _ := content["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		content["metadata"] = metadata
	}
	if metadata, ok := newer["metadata"].(map[string]any); ok {
		metadata["resourceVersion"] = before.GetResourceVersion()
	}
	return older, newer
}
