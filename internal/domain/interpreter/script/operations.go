package script

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

// Replicas implements interpreter.Operations.
func (f functions) Replicas(
	ctx context.Context, template *unstructured.Unstructured,
) (replicas int32, requirements *workv1alpha2.ReplicaRequirements, err error) {
	err = f[0].call(ctx, 2, func(s *sandbox, results []lua.LValue) error {
		number, ok := results[0].(lua.LNumber)
		if !ok {
			return wrongType(results[0], "a number")
		}
		// The comparison is false for NaN.
		whole := math.Trunc(float64(number))
		if !(whole >= math.MinInt32 && whole <= math.MaxInt32) {
			return fmt.Errorf("the function returned %v replicas, which is no 32-bit integer", float64(number))
		}
		if whole < 0 {
			return fmt.Errorf("the function returned %v replicas: return 0 or more", whole)
		}
		replicas = int32(whole)
		if results[1] == lua.LNil {
			return nil
		}
		requirements = &workv1alpha2.ReplicaRequirements{}
		return s.decode(results[1], "requirements", requirements)
	}, template.Object)
	if err != nil {
		return 0, nil, err
	}
	return replicas, requirements, nil
}

func wrongType(value lua.LValue, want string) error {
	if value == lua.LNil {
		return fmt.Errorf("the function returned nil, not %s", want)
	}
	return fmt.Errorf("the function returned a %s, not %s", value.Type(), want)
}

// decode converts a Lua table to an API type. what names the table in messages.
func (s *sandbox) decode(value lua.LValue, what string, into any) error {
	if value.Type() != lua.LTTable {
		return wrongType(value, "a table with "+what)
	}
	converted, err := s.convert(value, nil, nil, map[string]any{})
	if err != nil {
		return err
	}
	text, err := json.Marshal(converted)
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", what, err)
	}
	return unmarshal(text, what, &interpreter.RequirementTexts{}, into)
}

// unmarshal decodes a result into into. Before that, it decodes it into check, which validates fields.
func unmarshal(text []byte, what string, check, into any) error {
	for _, each := range []any{check, into} {
		if err := json.Unmarshal(text, each); err != nil {
			return fmt.Errorf("the function returned invalid %s: %w", what, err)
		}
	}
	return nil
}

// decodeList converts a Lua table to a list of an API type.
func decodeList[T any](s *sandbox, value lua.LValue, what string) (list []T, err error) {
	if value.Type() != lua.LTTable {
		return nil, wrongType(value, "a list of "+what)
	}
	converted, err := s.convert(value, nil, nil, []any{})
	if err != nil {
		return nil, err
	}
	if _, isList := converted.([]any); !isList {
		if object, isObject := converted.(map[string]any); !isObject || len(object) > 0 {
			return nil, fmt.Errorf("the function returned a table with the fields of one object, not a list of %s", what)
		}
		return nil, nil
	}
	text, err := json.Marshal(converted)
	if err != nil {
		return nil, fmt.Errorf("encoding the %s: %w", what, err)
	}
	return list, unmarshal(text, what, &interpreter.ComponentTexts{}, &list)
}

// Components implements interpreter.Operations.
func (f functions) Components(ctx context.Context, template *unstructured.Unstructured) (components []workv1alpha2.Component, err error) {
	err = f[0].call(ctx, 1, func(s *sandbox, results []lua.LValue) (err error) {
		if results[0] == lua.LNil {
			return nil
		}
		if components, err = decodeList[workv1alpha2.Component](s, results[0], "components"); err != nil {
			return err
		}
		return validateComponents(components)
	}, template.Object)
	return components, err
}

// validateComponents returns an error if components cannot be scheduled.
func validateComponents(components []workv1alpha2.Component) error {
	names := map[string]bool{}
	for i := range components {
		component := &components[i]
		switch {
		case component.Name == "":
			return fmt.Errorf("the function returned components[%d] without a name: set it", i)
		case names[component.Name]:
			return fmt.Errorf("the function returned two components with the name %q: use each name once", shorten(component.Name))
		case component.Replicas < 0:
			return fmt.Errorf("the function returned components[%d] with %d replicas: return 0 or more", i, component.Replicas)
		}
		names[component.Name] = true
	}
	return nil
}

// ReviseReplicas implements interpreter.Operations.
func (f functions) ReviseReplicas(
	ctx context.Context, template *unstructured.Unstructured, replicas int64,
) (revised *unstructured.Unstructured, err error) {
	err = f[0].call(ctx, 1, func(s *sandbox, results []lua.LValue) (err error) {
		revised, err = s.changed(results[0], template, template.Object)
		return err
	}, template.Object, replicas)
	return revised, err
}

// Retain implements interpreter.Operations.
func (f functions) Retain(
	ctx context.Context, desired, observed *unstructured.Unstructured,
) (retained *unstructured.Unstructured, err error) {
	err = f[0].call(ctx, 1, func(s *sandbox, results []lua.LValue) (err error) {
		retained, err = s.changed(results[0], desired, desired.Object, observed.Object)
		return err
	}, desired.Object, observed.Object)
	return retained, err
}

// changed converts the result to the changed object, or returns the object itself if they are equal. The
// inputs decide whether an empty table is a list or an object.
func (s *sandbox) changed(result lua.LValue, object *unstructured.Unstructured, inputs ...any) (*unstructured.Unstructured, error) {
	if result.Type() != lua.LTTable {
		return nil, wrongType(result, "the object as a table")
	}
	converted, err := s.convert(result, object.Object, nil, map[string]any{}, inputs...)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(converted, any(object.Object)) {
		return object, nil
	}
	content, isObject := converted.(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("the function returned a list, not the object")
	}
	changed := &unstructured.Unstructured{Object: content}
	return changed, validateIdentity(object, changed)
}

// validateIdentity returns an error if the script returned an object with another apiVersion, kind,
// namespace or name than it got.
func validateIdentity(before, after *unstructured.Unstructured) error {
	for _, field := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		old, _, _ := unstructured.NestedFieldNoCopy(before.Object, field...)
		changed, _, _ := unstructured.NestedFieldNoCopy(after.Object, field...)
		if !reflect.DeepEqual(old, changed) {
			return fmt.Errorf("the function returned an object with another %s: return the object that it got, with the changed fields",
				strings.Join(field, "."))
		}
	}
	return nil
}

// AggregateStatus implements interpreter.Operations.
func (f functions) AggregateStatus(
	ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (aggregated *unstructured.Unstructured, err error) {
	list, err := itemsOf(items)
	if err != nil {
		return nil, f[0].wrap(err)
	}
	err = f[0].call(ctx, 1, func(s *sandbox, results []lua.LValue) (err error) {
		aggregated, err = s.withStatus(results[0], template)
		return err
	}, template.Object, list)
	return aggregated, err
}

// withStatus returns the template with the result's status. The other fields of the result are ignored,
// because the template may have changed in the meantime.
func (s *sandbox) withStatus(result lua.LValue, template *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	table, isTable := result.(*lua.LTable)
	if !isTable {
		return nil, wrongType(result, "the object as a table")
	}
	s.load(table)
	value, before := table.RawGetString("status"), template.Object["status"]
	after, err := s.convert(value, before, path{"status"}, nil)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(after, before) {
		return template, nil
	}
	changed := maps.Clone(template.Object)
	switch after.(type) {
	case nil:
		delete(changed, "status")
	case map[string]any:
		changed["status"] = after
	case []any:
		return nil, fmt.Errorf("the function returned an object whose status is a list, not an object")
	default:
		return nil, fmt.Errorf("the function returned an object whose status is a %s, not a table", value.Type())
	}
	return &unstructured.Unstructured{Object: changed}, nil
}

// ReflectStatus implements interpreter.Operations.
func (f functions) ReflectStatus(ctx context.Context, memberObject *unstructured.Unstructured) (status *runtime.RawExtension, err error) {
	err = f[0].call(ctx, 1, func(s *sandbox, results []lua.LValue) error {
		if results[0].Type() != lua.LTTable {
			return wrongType(results[0], "a table with the status")
		}
		converted, err := s.convert(results[0], nil, nil, map[string]any{})
		if err != nil {
			return err
		}
		if _, isList := converted.([]any); isList {
			return fmt.Errorf("the function returned a list, not a table with the status")
		}
		text, err := json.Marshal(converted)
		if err != nil {
			return fmt.Errorf("encoding the status: %w", err)
		}
		status = &runtime.RawExtension{Raw: text}
		return nil
	}, memberObject.Object)
	return status, err
}

// IsHealthy implements interpreter.Operations.
func (f functions) IsHealthy(ctx context.Context, memberObject *unstructured.Unstructured) (healthy bool, err error) {
	err = f[0].call(ctx, 1, func(_ *sandbox, results []lua.LValue) error {
		value, ok := results[0].(lua.LBool)
		if !ok {
			return wrongType(results[0], "a boolean")
		}
		healthy = bool(value)
		return nil
	}, memberObject.Object)
	return healthy, err
}

// Dependencies implements interpreter.Operations. It returns the union of all functions' results, sorted by
// API version, kind, namespace and name.
func (f functions) Dependencies(
	ctx context.Context, template *unstructured.Unstructured,
) ([]configv1alpha1.DependentObjectReference, error) {
	all := []configv1alpha1.DependentObjectReference{}
	for _, function := range f {
		err := function.call(ctx, 1, func(s *sandbox, results []lua.LValue) error {
			list, err := decodeList[configv1alpha1.DependentObjectReference](s, results[0], "dependencies")
			if err != nil {
				return err
			}
			all = append(all, list...)
			// The interpreter validates the union again, but its error cannot name the customization.
			return interpreter.ValidateDependencies(list)
		}, template.Object)
		if err != nil {
			return nil, err
		}
	}
	return sortedDependencies(all)
}
