package builtin_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// TestKinds runs the cases of all files of testdata.
func TestKinds(t *testing.T) {
	for _, kind := range shippedKinds(t, newClock()) {
		t.Run(strings.TrimSuffix(kind.File, ".yaml"), func(t *testing.T) {
			for _, c := range kind.fixture.Cases {
				t.Run(c.Name, func(t *testing.T) { kind.check(t, c) })
			}
		})
	}
}

// check compares the answer to a case with the expected answer.
func (k shippedKind) check(t *testing.T, c fixtureCase) {
	got, err := k.answer(t, c)
	switch {
	case c.Error != "" && (err == nil || !strings.Contains(err.Error(), c.Error)):
		t.Fatalf("the error is %v, and not %q", err, c.Error)
	case c.Error != "":
		return
	case err != nil:
		t.Fatal(err)
	}
	if diff := cmp.Diff(k.want(t, c), withoutEmptyStatus(normalize(t, got)), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", c.Operation, diff)
	}
}

// answer asks the rules of the kind.
func (k shippedKind) answer(t *testing.T, c fixtureCase) (any, error) {
	operation, _ := interpreter.FindScriptOperation(c.Operation)
	if operation.Script(&k.Customization.Spec.Customizations) == "" {
		t.Fatalf("the kind has no script for the operation %q", c.Operation)
	}
	template, memberObject := k.fixture.template(t, c), k.fixture.memberObject(t, c)
	templateBefore, memberBefore := template.DeepCopy(), memberObject.DeepCopy()
	defer func() {
		if !reflect.DeepEqual(templateBefore, template) || !reflect.DeepEqual(memberBefore, memberObject) {
			t.Errorf("%s changed its argument (-before +after):\n%s", c.Operation, cmp.Diff(templateBefore, template)+cmp.Diff(memberBefore, memberObject))
		}
	}()
	switch c.Operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		replicas, requirements, err := k.rules.Replicas(t.Context(), template)
		if requirements == nil {
			return map[string]any{"replicas": replicas}, err
		}
		return map[string]any{"replicas": replicas, "requirements": requirements}, err
	case configv1alpha1.InterpreterOperationInterpretComponent:
		components, err := k.rules.Components(t.Context(), template)
		return append([]workv1alpha2.Component{}, components...), err
	case configv1alpha1.InterpreterOperationReviseReplica:
		return objectOf(k.rules.ReviseReplicas(t.Context(), template, c.Replicas))
	case configv1alpha1.InterpreterOperationRetain:
		return objectOf(k.rules.Retain(t.Context(), template, memberObject))
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return objectOf(k.rules.AggregateStatus(t.Context(), template, k.items(t, c)))
	case configv1alpha1.InterpreterOperationInterpretStatus:
		return k.rules.ReflectStatus(t.Context(), memberObject)
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return k.rules.IsHealthy(t.Context(), memberObject)
	case configv1alpha1.InterpreterOperationInterpretDependency:
		dependencies, err := k.rules.Dependencies(t.Context(), template)
		return formatDependencies(dependencies), err
	default:
		t.Fatalf("the operation %q is unknown", c.Operation)
		return nil, nil
	}
}

func objectOf(object *unstructured.Unstructured, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object.Object, nil
}

func formatDependencies(dependencies []configv1alpha1.DependentObjectReference) []string {
	list := []string{}
	for _, d := range dependencies {
		list = append(list, fmt.Sprintf("%s %s %s/%s", d.APIVersion, d.Kind, d.Namespace, d.Name))
	}
	slices.Sort(list)
	return list
}

// want returns the expected answer to a case.
func (k shippedKind) want(t *testing.T, c fixtureCase) any {
	if c.Want == nil {
		t.Fatal("the case has no expected answer")
	}
	switch c.Operation {
	case configv1alpha1.InterpreterOperationReviseReplica, configv1alpha1.InterpreterOperationRetain:
		return mergePatch(t, k.fixture.template(t, c).Object, c.Want).Object
	case configv1alpha1.InterpreterOperationAggregateStatus:
		object := k.fixture.template(t, c).Object
		object["status"] = decode(t, c.Want)
		return withoutEmptyStatus(object)
	default:
		return decode(t, c.Want)
	}
}

// withoutEmptyStatus returns the value. If it is an object with an empty status, the status is removed.
func withoutEmptyStatus(value any) any {
	if object, isObject := value.(map[string]any); isObject {
		if status, isStatus := object["status"].(map[string]any); isStatus && len(status) == 0 {
			delete(object, "status")
		}
	}
	return value
}

// TestCasesAreComplete requires that the cases of a kind cover its operations, and that its comment
// describes them.
func TestCasesAreComplete(t *testing.T) {
	for _, kind := range shippedKinds(t, newClock()) {
		t.Run(strings.TrimSuffix(kind.File, ".yaml"), func(t *testing.T) {
			for _, operation := range interpreter.ScriptOperations() {
				scripted := operation.Script(&kind.Customization.Spec.Customizations) != ""
				described := slices.ContainsFunc(kind.Operations, func(text builtin.OperationText) bool { return text.Name == operation.Name })
				covered := slices.ContainsFunc(kind.fixture.Cases, func(c fixtureCase) bool { return c.Operation == operation.Name })
				if described != scripted || covered != scripted {
					t.Errorf("%s: has a script: %t, is in the comment of the file: %t, has a case: %t", operation.Name, scripted, described, covered)
				}
			}
			if kind.Description == "" {
				t.Error("the comment at the start of the file does not describe the kind")
			}
			if len(kind.fixture.Observed) < 2 {
				t.Error("the test objects have fewer than two clusters")
			}
			checkNames(t, kind)
		})
	}
}

// checkNames requires that the names of the file and of the customization follow from the target.
func checkNames(t *testing.T, kind shippedKind) {
	target := kind.Target()
	if want := fmt.Sprintf("%s_%s_%s.yaml", target.Group, target.Version, target.Kind); kind.File != want {
		t.Errorf("the name of the file is %s, and not %s", kind.File, want)
	}
	short := strings.ToLower(target.Kind) + "." + target.Group
	if name := kind.Customization.Name; name != short && name != strings.ToLower(target.Kind)+"."+target.Version+"."+target.Group {
		t.Errorf("the name of the customization is %s, and not %s", name, short)
	}
	for cluster, object := range kind.fixture.Observed {
		if got := (&unstructured.Unstructured{Object: object}).GroupVersionKind(); got != target {
			t.Errorf("the object of cluster %s is a %s", cluster, got)
		}
	}
	if got := (&unstructured.Unstructured{Object: kind.fixture.Desired}).GroupVersionKind(); got != target {
		t.Errorf("the template is a %s", got)
	}
}

// TestFixturesHaveKinds requires that each file of testdata belongs to a kind, and that the names of
// customizations are unique.
func TestFixturesHaveKinds(t *testing.T) {
	var files, names []string
	for _, kind := range shippedKinds(t, newClock()) {
		if slices.Contains(names, kind.Customization.Name) {
			t.Errorf("two customizations have the name %s", kind.Customization.Name)
		}
		files, names = append(files, kind.File), append(names, kind.Customization.Name)
	}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(files, entry.Name()) {
			t.Errorf("no customization belongs to the test objects %s", entry.Name())
		}
	}
}

// TestScriptsCompile compiles all scripts and modules.
func TestScriptsCompile(t *testing.T) {
	for name, text := range builtin.Modules() {
		if err := script.Check(text); err != nil {
			t.Errorf("module %s: %v", name, err)
		}
	}
	for _, kind := range shippedKinds(t, newClock()) {
		for _, operation := range interpreter.ScriptOperations() {
			if err := script.Check(operation.Script(&kind.Customization.Spec.Customizations)); err != nil {
				t.Errorf("%s, %s: %v", kind.File, operation.Name, err)
			}
		}
	}
}
