package interpreter

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

func TestEachScriptFieldHasAnOperation(t *testing.T) {
	remaining := map[string]bool{}
	for field := range reflect.TypeFor[configv1alpha1.CustomizationRules]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		remaining[name] = true
	}
	for _, operation := range ScriptOperations() {
		if !remaining[operation.Field] {
			t.Errorf("operation %s has the unknown or repeated field %q", operation.Name, operation.Field)
		}
		delete(remaining, operation.Field)
		var rules configv1alpha1.CustomizationRules
		operation.SetScript(&rules, "text")
		for _, other := range ScriptOperations() {
			want := ""
			if other.Name == operation.Name {
				want = "text"
			}
			if got := other.Script(&rules); got != want {
				t.Errorf("after setting %s, the script of %s is %q, want %q", operation.Name, other.Name, got, want)
			}
		}
		operation.SetScript(&rules, "")
		if rules != (configv1alpha1.CustomizationRules{}) {
			t.Errorf("an empty script of %s does not remove the field", operation.Name)
		}
	}
	for field := range remaining {
		t.Errorf("no operation uses the field %s", field)
	}
}

func TestMerge(t *testing.T) {
	foo := configv1alpha1.CustomizationTarget{APIVersion: "example.io/v1", Kind: "Foo"}
	fooV2 := configv1alpha1.CustomizationTarget{APIVersion: "example.io/v2", Kind: "Foo"}
	customization := func(name string, target configv1alpha1.CustomizationTarget, scripts map[configv1alpha1.InterpreterOperation]string) *configv1alpha1.ResourceInterpreterCustomization {
		c := &configv1alpha1.ResourceInterpreterCustomization{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{Target: target}}
		for operation, text := range scripts {
			found, ok := FindScriptOperation(operation)
			if !ok {
				t.Fatalf("unknown operation %s", operation)
			}
			found.SetScript(&c.Spec.Customizations, text)
		}
		return c
	}
	type scripts = map[configv1alpha1.InterpreterOperation]string
	const (
		retain       = configv1alpha1.InterpreterOperationRetain
		health       = configv1alpha1.InterpreterOperationInterpretHealth
		dependencies = configv1alpha1.InterpreterOperationInterpretDependency
	)
	tests := map[string]struct {
		customizations []*configv1alpha1.ResourceInterpreterCustomization
		want           map[schema.GroupVersionKind]Scripts
	}{
		"no customization": {want: map[schema.GroupVersionKind]Scripts{}},
		"a customization without a script": {
			customizations: []*configv1alpha1.ResourceInterpreterCustomization{customization("a", foo, nil)},
			want:           map[schema.GroupVersionKind]Scripts{},
		},
		"the smallest name has precedence": {
			customizations: []*configv1alpha1.ResourceInterpreterCustomization{
				customization("b", foo, scripts{retain: "b", health: "b"}), customization("a", foo, scripts{retain: "a"}),
			},
			want: map[schema.GroupVersionKind]Scripts{{Group: "example.io", Version: "v1", Kind: "Foo"}: {retain: {{"a", "a"}}, health: {{"b", "b"}}}},
		},
		"all scripts for dependencies are used": {
			customizations: []*configv1alpha1.ResourceInterpreterCustomization{
				customization("b", foo, scripts{dependencies: "b"}), customization("a", foo, scripts{dependencies: "a"}),
			},
			want: map[schema.GroupVersionKind]Scripts{{Group: "example.io", Version: "v1", Kind: "Foo"}: {dependencies: {{"a", "a"}, {"b", "b"}}}},
		},
		"versions are separate kinds": {
			customizations: []*configv1alpha1.ResourceInterpreterCustomization{
				customization("a", foo, scripts{retain: "a"}), customization("b", fooV2, scripts{retain: "b"}),
			},
			want: map[schema.GroupVersionKind]Scripts{
				{Group: "example.io", Version: "v1", Kind: "Foo"}: {retain: {{"a", "a"}}},
				{Group: "example.io", Version: "v2", Kind: "Foo"}: {retain: {{"b", "b"}}},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := MergeCustomizations(test.customizations)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for kind, scripts := range got {
				if !scripts.Equal(test.want[kind]) {
					t.Errorf("the scripts of %s are not equal", kind)
				}
			}
		})
	}
}
