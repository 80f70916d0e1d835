package script

import (
	"strings"
	"testing"
)

// callKube returns the result of a script that can use the variable kube, as JSON.
func callKube(t *testing.T, script string, resourceQuotaEstimate bool) (string, error) {
	t.Helper()
	engine := mustNewEngine(t, Options{ResourceQuotaEstimate: resourceQuotaEstimate})
	return evaluate(t, engine, "local kube = require('kube') local function f()\n"+script+"\nend return {r = f()}", "{}")
}

// resultJSON returns the result that callKube returns for a value.
func resultJSON(t *testing.T, value any) string {
	if value == nil {
		return "{}"
	}
	return mustEncode(t, map[string]any{"r": value})
}

func TestQuantities(t *testing.T) {
	tests := map[string]struct {
		script string
		want   any
	}{
		"the sum of two quantities":                      {`return kube.resourceAdd("100m", "1")`, "1100m"},
		"the sum keeps the format of the first quantity": {`return kube.resourceAdd("1Gi", "1024Mi")`, "2Gi"},
		"nil is zero":                                        {`return kube.resourceAdd(nil, "2", nil)`, "2"},
		"the sum of nothing is zero":                         {`return kube.resourceAdd()`, "0"},
		"the sum of many quantities":                         {`local t = {} for i = 1, 200 do t[i] = "1m" end return kube.resourceAdd(unpack(t))`, "200m"},
		"a sum beyond 64 bits is exact":                      {`return kube.resourceAdd("9223372036854775807", "1")`, "9223372036854775808"},
		"a quantity with many digits is exact":               {`return kube.resourceAdd("123456789012345678901234567891", "1")`, "123456789012345678901234567892"},
		"a small quantity is exact":                          {`return kube.resourceAdd("1n", "1")`, "1000000001n"},
		"a negative quantity is subtracted":                  {`return kube.resourceAdd("1", "-250m")`, "750m"},
		"a quantity with an exponent":                        {`return kube.resourceAdd("1e3", "1")`, "1001"},
		"a quantity of exabytes has no exponent":             {`return kube.resourceAdd("1E", "1E")`, "2E"},
		"a quantity as a number":                             {`return kube.getResourceQuantity("1500m")`, 1.5},
		"a binary quantity as a number":                      {`return kube.getResourceQuantity("1Ki")`, int64(1024)},
		"nil as a number":                                    {`return kube.getResourceQuantity(nil)`, int64(0)},
		"a large quantity as a number is approximate":        {`return kube.getResourceQuantity("1e30")`, 1e30},
		"quantities can be used for calculations in scripts": {`return kube.getResourceQuantity("2") * 3`, int64(6)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := callKube(t, test.script, false); err != nil || got != resultJSON(t, test.want) {
				t.Errorf("%s: got %s, %v, want %v", test.script, got, err, test.want)
			}
		})
	}
}

func TestWrongArgumentsAreErrorsWithTheLine(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"a malformed quantity":                     {`kube.resourceAdd("1", "1x")`, `line 3: kube.resourceAdd: argument 2: "1x" is not a quantity`},
		"an empty quantity":                        {`kube.resourceAdd("")`, `argument 1: "" is not a quantity`},
		"a number instead of a quantity":           {`kube.resourceAdd(1)`, `argument 1: a quantity is a string such as "500m", not a number`},
		"a table instead of a quantity":            {`kube.resourceAdd("1", {})`, "argument 2: a quantity is a string"},
		"a boolean instead of a quantity":          {`kube.getResourceQuantity(true)`, "not a boolean"},
		"a malformed quantity as a number":         {`kube.getResourceQuantity("a lot")`, "is not a quantity"},
		"a negative quantity as a number":          {`kube.getResourceQuantity("-1")`, "the quantity -1 is negative or infinite"},
		"a quantity with a huge exponent":          {`kube.resourceAdd("1e999999999", "1")`, "has an exponent that is not between"},
		"a quantity whose exponent overflows":      {`kube.resourceAdd("1e99999999999999999999")`, "has an exponent that is not between"},
		"a quantity with a huge negative exponent": {`kube.resourceAdd("1e-999999999", "1")`, "has an exponent that is not between"},
		"a quantity with many digits":              {`kube.resourceAdd(string.rep("9", 200))`, "has more than 64 bytes"},
		"no argument":                              {`kube.getResourceQuantity()`, "kube.getResourceQuantity requires 1 arguments, but was called with 0"},
		"two arguments instead of one":             {`kube.getResourceQuantity("1", "2")`, "requires 1 arguments, but was called with 2"},
		"no pod template":                          {`kube.accuratePodRequirements()`, "kube.accuratePodRequirements requires 1 arguments"},
		"a pod template that is nil":               {"\nkube.accuratePodRequirements(nil)", "line 4: kube.accuratePodRequirements: argument 1: the pod template is a nil value, not a table"},
		"a pod template that is a string":          {`kube.accuratePodRequirements("nginx")`, "the pod template is a string value, not a table"},
		"a pod template that is a list":            {`kube.accuratePodRequirements({1, 2})`, "the pod template is a list"},
		"a pod template with a function":           {`kube.accuratePodRequirements({spec = print})`, "argument 1: the value at spec of the result is a function"},
		"containers of a wrong type":               {`kube.accuratePodRequirements({spec = {containers = "nginx"}})`, "reading the pod template"},
		"a malformed quantity in a pod template":   {`kube.accuratePodRequirements({spec = {containers = {{resources = {requests = {cpu = "1x"}}}}}})`, "reading the pod template"},
		"a huge exponent in a pod template":        {`kube.accuratePodRequirements({spec = {containers = {{resources = {limits = {cpu = "12345678901234567890e999999999"}}}}}})`, "has an exponent that is not between"},
		"a huge exponent in an overhead":           {`kube.accuratePodRequirements({spec = {overhead = {cpu = "1e999999999"}}})`, "has an exponent that is not between"},
		"a huge exponent in a volume":              {`kube.getPodDependencies({spec = {volumes = {{emptyDir = {sizeLimit = "12345678901234567890e999999999"}}}}}, "a")`, "has an exponent that is not between"},
		"dependencies without a namespace":         {`kube.getPodDependencies({})`, "kube.getPodDependencies requires 2 arguments, but was called with 1"},
		"dependencies with three arguments":        {`kube.getPodDependencies({}, "a", "b")`, "requires 2 arguments, but was called with 3"},
		"a namespace that is a table":              {`kube.getPodDependencies({}, {})`, "argument 2: the namespace is a table, not a string"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := callKube(t, test.script, false)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want one with %q", test.script, err, test.want)
			}
		})
	}
}

const fullTemplate = `{
	metadata = {labels = {commit = "12e4567890"}},
	spec = {
		priorityClassName = "high", serviceAccountName = "runner", nodeSelector = {disk = "ssd"},
		tolerations = {{key = "dedicated", operator = "Exists"}},
		containers = {
			{name = "a", resources = {requests = {cpu = "100m"}, limits = {memory = "1Gi"}}, env = {{name = "HASH", value = "1e999999"},
				{name = "KEY", valueFrom = {secretKeyRef = {name = "keys", key = "k"}}}}},
			{name = "b", resources = {requests = {cpu = 2}}, envFrom = {{configMapRef = {name = "settings"}}}},
		},
		initContainers = {{name = "c", resources = {requests = {memory = "3Gi"}}}},
		overhead = {cpu = "10m"},
		volumes = {{name = "data", persistentVolumeClaim = {claimName = "data"}}, {name = "tmp", emptyDir = {}}},
	},
}`

func TestPodTemplates(t *testing.T) {
	claim := map[string]any{
		"nodeSelector": map[string]any{"disk": "ssd"},
		"tolerations":  []any{map[string]any{"key": "dedicated", "operator": "Exists"}},
	}
	requests := map[string]any{"cpu": "2110m", "memory": "3Gi"}
	reference := func(kind, namespace, name string) any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name}
	}
	tests := map[string]struct {
		script                string
		resourceQuotaEstimate bool
		want                  any
	}{
		"requirements sum up containers, take the maximum of init containers and add the overhead": {
			script: "return kube.accuratePodRequirements(" + fullTemplate + ")",
			want:   map[string]any{"nodeClaim": claim, "resourceRequest": requests},
		},
		"requirements contain the priority class if quotas are estimated": {
			script: "return kube.accuratePodRequirements(" + fullTemplate + ")", resourceQuotaEstimate: true,
			want: map[string]any{"nodeClaim": claim, "resourceRequest": requests, "priorityClassName": "high"},
		},
		"a Pod without requirements has none": {
			script: `return kube.accuratePodRequirements({spec = {containers = {{name = "a"}}}})`,
		},
		"an empty pod template has no requirements": {
			script: `return kube.accuratePodRequirements({})`,
		},
		"an empty table may stand for a list": {
			script: `return kube.accuratePodRequirements({spec = {tolerations = {}, nodeSelector = {}, containers = {{resources = {limits = {cpu = "1"}}}}}})`,
			want:   map[string]any{"resourceRequest": map[string]any{"cpu": "1"}},
		},
		"a result can be changed by the script": {
			script: `local r = kube.accuratePodRequirements({spec = {overhead = {cpu = "1"}}}) r.resourceRequest.cpu = kube.resourceAdd(r.resourceRequest.cpu, "1") return r`,
			want:   map[string]any{"resourceRequest": map[string]any{"cpu": "2"}},
		},
		"dependencies are sorted by kind and name": {
			script: "return kube.getPodDependencies(" + fullTemplate + `, "shop")`,
			want: []any{
				reference("ConfigMap", "shop", "settings"), reference("PersistentVolumeClaim", "shop", "data"),
				reference("Secret", "shop", "keys"), reference("ServiceAccount", "shop", "runner"),
			},
		},
		"the default of the namespace is default": {
			script: `return kube.getPodDependencies({spec = {serviceAccountName = "runner"}}, nil)`,
			want:   []any{reference("ServiceAccount", "default", "runner")},
		},
		"a Pod without dependencies has an empty list": {
			script: `return #kube.getPodDependencies({}, "shop")`,
			want:   int64(0),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := callKube(t, test.script, test.resourceQuotaEstimate); err != nil || got != resultJSON(t, test.want) {
				t.Errorf("%s: got %s, %v, want %v", test.script, got, err, test.want)
			}
		})
	}
}

// TestPodTemplatesOfWrongTypesAreErrors replaces fields by values of other types.
func TestPodTemplatesOfWrongTypesAreErrors(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"spec":                    {`{spec = 1}`, "PodTemplateSpec.spec"},
		"containers":              {`{spec = {containers = "nginx"}}`, "spec.containers"},
		"a container":             {`{spec = {containers = {"nginx"}}}`, "spec.containers"},
		"resources":               {`{spec = {initContainers = {{resources = true}}}}`, "spec.initContainers.resources"},
		"requests":                {`{spec = {containers = {{resources = {requests = {1}}}}}}`, "spec.containers.resources.requests"},
		"a quantity":              {`{spec = {containers = {{resources = {limits = {cpu = true}}}}}}`, "quantities must match"},
		"the policy of a restart": {`{spec = {initContainers = {{restartPolicy = {1}}}}}`, "spec.initContainers.restartPolicy"},
		"overhead":                {`{spec = {overhead = "1"}}`, "spec.overhead"},
		"the node selector":       {`{spec = {nodeSelector = {disk = 1}}}`, "spec.nodeSelector"},
		"tolerations":             {`{spec = {tolerations = "all"}}`, "spec.tolerations"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := callKube(t, "return kube.accuratePodRequirements("+test.template+")", false)
			if err == nil || !strings.Contains(err.Error(), "kube.accuratePodRequirements: argument 1: reading the pod template") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// FuzzQuantity requires that a string is a sum or an error, within a bounded time.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"1", "1e999999999", "-1.5Gi", "12345678901234567890e64", "0e-64", "1E", "1e+5", ".", "+"} {
		f.Add(text, "1")
	}
	engine := mustNewEngine(f, Options{})
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, script := range []string{
			`return require("kube").resourceAdd(obj.first, obj.second)`, `return require("kube").getResourceQuantity(obj.first)`,
			`return require("kube").accuratePodRequirements({spec = {overhead = {cpu = obj.first, memory = obj.second}}})`,
		} {
			object := mustEncode(t, map[string]any{"first": first, "second": second})
			got, err := evaluate(t, engine, "local function f(obj) "+script+" end return {r = f(obj)}", object)
			if err != nil && strings.Contains(err.Error(), "runtime error") {
				t.Errorf("%s with %q and %q: %v", script, first, second, err)
			}
			if len(got) > 1024 {
				t.Errorf("%s with %q and %q: a result of %d bytes", script, first, second, len(got))
			}
		}
	})
}
