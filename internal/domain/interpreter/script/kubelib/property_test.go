package kubelib

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/interpreter/script/stdlib/stdlibtest"
)

// optional draws nothing in one of two cases.
func optional(t *rapid.T, object map[string]any, name string, draw func() any) {
	if rapid.Bool().Draw(t, name+" is set") {
		object[name] = draw()
	}
}

func drawList(t *rapid.T, draw func() any) any {
	list := []any{}
	for range rapid.IntRange(0, 2).Draw(t, "length") {
		list = append(list, draw())
	}
	return list
}

func drawQuantities(t *rapid.T) any {
	quantities := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "number of resources") {
		name := rapid.SampledFrom([]string{"cpu", "memory", "ephemeral-storage", "pods", "example.com/gpu", "unknown"}).Draw(t, "resource")
		quantities[name] = rapid.SampledFrom([]any{"100m", "1", "2Gi", "1e3", "0", "-1", int64(2), 0.5, "1.5", nil}).Draw(t, "quantity")
	}
	return quantities
}

func drawResources(t *rapid.T) any {
	resources := map[string]any{}
	optional(t, resources, "requests", func() any { return drawQuantities(t) })
	optional(t, resources, "limits", func() any { return drawQuantities(t) })
	return resources
}

func drawContainer(t *rapid.T) any {
	container := map[string]any{"name": "a", "image": "nginx"}
	optional(t, container, "resources", func() any { return drawResources(t) })
	optional(t, container, "restartPolicy", func() any { return "Always" })
	return container
}

func drawTemplate(t *rapid.T) map[string]any {
	spec := map[string]any{}
	optional(t, spec, "containers", func() any { return drawList(t, func() any { return drawContainer(t) }) })
	optional(t, spec, "initContainers", func() any { return drawList(t, func() any { return drawContainer(t) }) })
	optional(t, spec, "overhead", func() any { return drawQuantities(t) })
	optional(t, spec, "resources", func() any { return drawResources(t) })
	optional(t, spec, "priorityClassName", func() any { return "high" })
	optional(t, spec, "nodeSelector", func() any {
		return rapid.SampledFrom([]any{nil, map[string]any{}, map[string]any{"disk": "ssd"}}).Draw(t, "node selector")
	})
	optional(t, spec, "tolerations", func() any {
		return drawList(t, func() any { return map[string]any{"key": "a", "tolerationSeconds": int64(3)} })
	})
	optional(t, spec, "affinity", func() any {
		return rapid.SampledFrom([]any{
			nil, map[string]any{}, map[string]any{"podAffinity": map[string]any{}}, map[string]any{"nodeAffinity": map[string]any{}},
			map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
				"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "zone", "operator": "Exists"}}}},
			}}},
		}).Draw(t, "affinity")
	})
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "a"}}}
	optional(t, template, "spec", func() any { return spec })
	return template
}

// TestRequirementsEqualThoseOfTheWholeTemplate compares the requirements with those of a template
// that is converted with all its fields.
func TestRequirementsEqualThoseOfTheWholeTemplate(t *testing.T) {
	host, state := stdlibtest.New()
	defer state.Close()
	rapid.Check(t, func(t *rapid.T) {
		object := drawTemplate(t)
		whole := &corev1.PodTemplateSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, whole); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{}
		if requirements := builtin.PodRequirements(whole); requirements != nil {
			requirements.PriorityClassName = whole.Spec.PriorityClassName
			converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(requirements)
			if err != nil {
				t.Fatal(err)
			}
			want = converted
		}
		got := map[string]any{}
		template, err := requirementsTemplate(host, object)
		if err != nil {
			t.Fatal(err)
		}
		if requirements := builtin.PodRequirements(template); requirements != nil {
			requirements.PriorityClassName = template.Spec.PriorityClassName
			if got, err = requirementsObject(requirements); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("requirements of %v (-want +got):\n%s", object, diff)
		}
	})
}

// TestTemplatesOfWrongTypesAreErrors replaces each field that is read by values of other types.
func TestTemplatesOfWrongTypesAreErrors(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"spec":                    {`{spec = 1}`, "spec is a number, not an object"},
		"containers":              {`{spec = {containers = "nginx"}}`, "spec.containers is a string, not a list"},
		"a container":             {`{spec = {containers = {"nginx"}}}`, "spec.containers[0] is a string, not an object"},
		"resources":               {`{spec = {initContainers = {{resources = true}}}}`, "spec.initContainers[0].resources is a boolean, not an object"},
		"requests":                {`{spec = {containers = {{resources = {requests = {1}}}}}}`, "spec.containers[0].resources.requests is a list, not an object"},
		"a quantity":              {`{spec = {containers = {{resources = {limits = {cpu = true}}}}}}`, "spec.containers[0].resources.limits.cpu: a quantity is a string or a number, not a boolean"},
		"the policy of a restart": {`{spec = {initContainers = {{restartPolicy = {}}}}}`, "spec.initContainers[0].restartPolicy is a table, not a string"},
		"resources of the pod":    {`{spec = {resources = "1"}}`, "spec.resources is a string, not an object"},
		"overhead":                {`{spec = {overhead = "1"}}`, "spec.overhead is a string, not an object"},
		"the node selector":       {`{spec = {nodeSelector = {disk = 1}}}`, "spec.nodeSelector.disk is a number, not a string"},
		"the priority class":      {`{spec = {priorityClassName = 1}}`, "spec.priorityClassName is a number, not a string"},
		"affinity":                {`{spec = {affinity = "zone"}}`, "spec.affinity is a string, not an object"},
		"tolerations":             {`{spec = {tolerations = "all"}}`, "reading the pod template"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, state := stdlibtest.New()
			defer state.Close()
			state.SetGlobal("kube", state.SetFuncs(state.NewTable(), Functions(false)))
			results, err := stdlibtest.Run(state, "return pcall(kube.accuratePodRequirements, "+test.template+")")
			if err != nil || results[0] != lua.LFalse {
				t.Fatalf("no error: %v, %v", results, err)
			}
			if message := results[1].String(); !strings.Contains(message, test.want) {
				t.Errorf("error %q, want one with %q", message, test.want)
			}
		})
	}
}
