package script

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

const (
	replica    = configv1alpha1.InterpreterOperationInterpretReplica
	component  = configv1alpha1.InterpreterOperationInterpretComponent
	revise     = configv1alpha1.InterpreterOperationReviseReplica
	retention  = configv1alpha1.InterpreterOperationRetain
	aggregate  = configv1alpha1.InterpreterOperationAggregateStatus
	reflection = configv1alpha1.InterpreterOperationInterpretStatus
	health     = configv1alpha1.InterpreterOperationInterpretHealth
	dependency = configv1alpha1.InterpreterOperationInterpretDependency
)

const web = `{"apiVersion":"example.com/v1","kind":"Workload","metadata":{"name":"web","namespace":"shop"},"spec":{"big":9007199254740993,"empty":{},"list":[],"replicas":2},"status":{"ready":1}}`

// answer is the result of any operation as JSON.
func answer(t *testing.T, engine *Engine, operation configv1alpha1.InterpreterOperation, scripts []string, observed string, items []workv1alpha2.AggregatedStatusItem) (string, error) {
	t.Helper()
	rules, object, ctx := rulesOf(engine, operation, scripts...), objectOf(t, web), context.Background()
	before := object.DeepCopy()
	defer func() {
		if diff := cmp.Diff(before, object); diff != "" {
			t.Errorf("the argument changed (-before +after):\n%s", diff)
		}
	}()
	type replicas struct {
		Replicas     int32                             `json:"replicas"`
		Requirements *workv1alpha2.ReplicaRequirements `json:"requirements,omitempty"`
	}
	var result any
	var err error
	switch operation {
	case replica:
		n, requirements, failure := rules.Replicas(ctx, object)
		result, err = replicas{n, requirements}, failure
	case component:
		result, err = rules.Components(ctx, object)
	case revise:
		result, err = rules.ReviseReplicas(ctx, object, 5)
	case retention:
		result, err = rules.Retain(ctx, object, objectOf(t, observed))
	case aggregate:
		result, err = rules.AggregateStatus(ctx, object, items)
	case reflection:
		result, err = rules.ReflectStatus(ctx, object)
	case health:
		result, err = rules.IsHealthy(ctx, object)
	default:
		result, err = rules.Dependencies(ctx, object)
	}
	if err != nil {
		return "", err
	}
	if changed, isObject := result.(*unstructured.Unstructured); isObject {
		if changed == object {
			return "unchanged", nil
		}
		result = changed.Object
	}
	return mustEncode(t, result), nil
}

func TestOperations(t *testing.T) {
	one := []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(`{"ready":3,"big":9007199254740993}`)}, Applied: true, Health: workv1alpha2.ResourceHealthy}}
	tests := map[string]struct {
		operation configv1alpha1.InterpreterOperation
		scripts   []string
		observed  string
		items     []workv1alpha2.AggregatedStatusItem
		want      string
		wantErr   string
	}{
		"replicas without requirements":              {operation: replica, scripts: []string{`function GetReplicas(o) return o.spec.replicas end`}, want: `{"replicas":2}`},
		"replicas with requirements":                 {operation: replica, scripts: []string{`function GetReplicas(o) return 3, {resourceRequest = {cpu = "1"}, namespace = o.metadata.namespace} end`}, want: `{"replicas":3,"requirements":{"resourceRequest":{"cpu":"1"},"namespace":"shop"}}`},
		"replicas are cut to an integer":             {operation: replica, scripts: []string{`function GetReplicas(o) return 2.7, nil end`}, want: `{"replicas":2}`},
		"replicas as a string":                       {operation: replica, scripts: []string{`function GetReplicas(o) return "2" end`}, wantErr: "customization workload, InterpretReplica: the function returned a string, not a number"},
		"replicas that are nil":                      {operation: replica, scripts: []string{`function GetReplicas(o) return o.spec.x end`}, wantErr: "the function returned nil, not a number"},
		"replicas that are no number":                {operation: replica, scripts: []string{`function GetReplicas(o) return 0/0 end`}, wantErr: "the function returned NaN replicas, which is no 32-bit integer"},
		"too many replicas":                          {operation: replica, scripts: []string{`function GetReplicas(o) return 3000000000 end`}, wantErr: "the function returned 3e+09 replicas, which is no 32-bit integer"},
		"requirements as a number":                   {operation: replica, scripts: []string{`function GetReplicas(o) return 1, 2 end`}, wantErr: "the function returned a number, not a table with requirements"},
		"requirements of a wrong type":               {operation: replica, scripts: []string{`function GetReplicas(o) return 1, {resourceRequest = {cpu = "x"}} end`}, wantErr: `the function returned invalid requirements: "x" is not a quantity: write one such as "500m" or "1Gi"`},
		"negative replicas":                          {operation: replica, scripts: []string{`function GetReplicas(o) return -1 end`}, wantErr: "the function returned -1 replicas: return 0 or more"},
		"requirements that take forever to parse":    {operation: replica, scripts: []string{`function GetReplicas(o) return 1, {resourceRequest = {cpu = "1e-2147483648"}} end`}, wantErr: `the quantity "1e-2147483648" has an exponent`},
		"requirements with another case":             {operation: replica, scripts: []string{`function GetReplicas(o) return 1, {ResourceRequest = {cpu = "1e-2147483648"}} end`}, wantErr: "has an exponent"},
		"requirements of a Pod that take forever":    {operation: replica, scripts: []string{`function GetReplicas(o) return 1, require("kube").accuratePodRequirements({spec = {containers = {{name = "a", resources = {requests = {cpu = "1e-2147483648"}}}}}}) end`}, wantErr: "exponent"},
		"requirements that are a huge number":        {operation: replica, scripts: []string{`function GetReplicas(o) return 1, {resourceRequest = {cpu = 1e300}} end`}, wantErr: "has an exponent"},
		"a component that takes forever to parse":    {operation: component, scripts: []string{`function GetComponents(o) return {{name = "a", replicas = 1, replicaRequirements = {resourceRequest = {cpu = "1e2147483647"}}}} end`}, wantErr: `the quantity "1e2147483647" has an exponent`},
		"a component with negative replicas":         {operation: component, scripts: []string{`function GetComponents(o) return {{name = "a", replicas = -1}} end`}, wantErr: "components[0] with -1 replicas: return 0 or more"},
		"a component without a name":                 {operation: component, scripts: []string{`function GetComponents(o) return {{replicas = 1}} end`}, wantErr: "components[0] without a name"},
		"two components with one name":               {operation: component, scripts: []string{`function GetComponents(o) return {{name = "a", replicas = 1}, {name = "a", replicas = 1}} end`}, wantErr: `two components with the name "a"`},
		"components":                                 {operation: component, scripts: []string{`function GetComponents(o) return {{name = "a", replicas = 1}, {name = "b", replicas = 2}} end`}, want: `[{"name":"a","replicas":1},{"name":"b","replicas":2}]`},
		"components that are nil":                    {operation: component, scripts: []string{`function GetComponents(o) return nil end`}, want: `null`},
		"components that are one object":             {operation: component, scripts: []string{`function GetComponents(o) return {name = "a"} end`}, wantErr: "the function returned a table with the fields of one object, not a list of components"},
		"components as a string":                     {operation: component, scripts: []string{`function GetComponents(o) return "x" end`}, wantErr: "the function returned a string, not a list of components"},
		"revised replicas":                           {operation: revise, scripts: []string{`function ReviseReplica(o, n) o.spec.replicas = n return o end`}, want: strings.Replace(web, `"replicas":2`, `"replicas":5`, 1)},
		"revised replicas without a change":          {operation: revise, scripts: []string{`function ReviseReplica(o, n) o.spec.replicas = 2 o.spec = o.spec return o end`}, want: "unchanged"},
		"a revision of another object":               {operation: revise, scripts: []string{`function ReviseReplica(o, n) o.metadata.name = "x" return o end`}, wantErr: "customization workload, ReviseReplica: the function returned an object with another metadata.name: return the object that it got"},
		"a revision that is a number":                {operation: revise, scripts: []string{`function ReviseReplica(o, n) return n end`}, wantErr: "the function returned a number, not the object as a table"},
		"a revision that is a list":                  {operation: revise, scripts: []string{`function ReviseReplica(o, n) return {o} end`}, wantErr: "the function returned a list, not the object"},
		"a revision that is empty":                   {operation: revise, scripts: []string{`function ReviseReplica(o, n) return {} end`}, wantErr: "another apiVersion"},
		"a retained field":                           {operation: retention, scripts: []string{`function Retain(d, o) d.spec.big = o.spec.big d.spec.list = o.spec.list return d end`}, observed: `{"spec":{"big":9007199254740995,"list":[{}]}}`, want: strings.Replace(strings.Replace(web, `"list":[]`, `"list":[{}]`, 1), "993", "995", 1)},
		"a retained field that is equal":             {operation: retention, scripts: []string{`function Retain(d, o) d.spec = o.spec return d end`}, observed: web, want: "unchanged"},
		"the observed object instead of the desired": {operation: retention, scripts: []string{`function Retain(d, o) return o end`}, observed: `{"apiVersion":"example.com/v1"}`, wantErr: "another kind"},
		"an aggregated status":                       {operation: aggregate, items: one, scripts: []string{`function AggregateStatus(o, items) o.status = {} o.status.ready = items[1].status.ready o.status.big = items[1].status.big return {status = o.status} end`}, want: strings.Replace(web, `{"ready":1}`, `{"big":9007199254740993,"ready":3}`, 1)},
		"items have their fields":                    {operation: aggregate, items: one, scripts: []string{`function AggregateStatus(o, items) local i = items[1] o.status = {n = #items, c = i.clusterName, a = i.applied, h = i.health, m = i.appliedMessage} return o end`}, want: strings.Replace(web, `{"ready":1}`, `{"a":true,"c":"a","h":"Healthy","n":1}`, 1)},
		"nil items":                                  {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) o.status = {isNil = items == nil} return o end`}, want: strings.Replace(web, `{"ready":1}`, `{"isNil":true}`, 1)},
		"empty items":                                {operation: aggregate, items: []workv1alpha2.AggregatedStatusItem{}, scripts: []string{`function AggregateStatus(o, items) o.status = {isNil = items == nil, n = #items} return o end`}, want: strings.Replace(web, `{"ready":1}`, `{"isNil":false,"n":0}`, 1)},
		"an aggregated status without a change":      {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) o.status = {ready = 1} o.spec = nil return o end`}, want: "unchanged"},
		"an aggregated status that is removed":       {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) o.status = nil return o end`}, want: strings.Replace(web, `,"status":{"ready":1}`, "", 1)},
		"an aggregated status that is not touched":   {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) o.metadata.name = "x" return o end`}, want: "unchanged"},
		"an aggregated status that is read":          {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) local x = o.status.ready return o end`}, want: "unchanged"},
		"an aggregated status that is a number":      {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) o.status = 1 return o end`}, wantErr: "the function returned an object whose status is a number, not a table"},
		"an aggregated status that is a list":        {operation: aggregate, scripts: []string{`function AggregateStatus(o, items) o.status = {1} return o end`}, wantErr: "status is a list"},
		"a status that is no JSON":                   {operation: aggregate, items: []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(`{`)}}}, scripts: []string{`function AggregateStatus(o, items) return o end`}, wantErr: "customization workload, AggregateStatus: reading the status of cluster a: unexpected end of JSON input"},
		"a reflected status":                         {operation: reflection, scripts: []string{`function ReflectStatus(o) return o.status end`}, want: `{"ready":1}`},
		"a reflected status that is made":            {operation: reflection, scripts: []string{`function ReflectStatus(o) return {big = o.spec.big, e = o.spec.empty, l = o.spec.list, r = {}} end`}, want: `{"big":9007199254740993,"e":{},"l":[]}`},
		"a reflected status that is empty":           {operation: reflection, scripts: []string{`function ReflectStatus(o) return {} end`}, want: `{}`},
		"a reflected status that is nil":             {operation: reflection, scripts: []string{`function ReflectStatus(o) return o.x end`}, wantErr: "the function returned nil, not a table with the status"},
		"a reflected status that is a list":          {operation: reflection, scripts: []string{`function ReflectStatus(o) return {1} end`}, wantErr: "the function returned a list, not a table with the status"},
		"health":                                     {operation: health, scripts: []string{`function InterpretHealth(o) return o.status.ready == 1 end`}, want: "true"},
		"health that is a string":                    {operation: health, scripts: []string{`function InterpretHealth(o) return "yes" end`}, wantErr: "customization workload, InterpretHealth: the function returned a string, not a boolean"},
		"dependencies are sorted and united":         {operation: dependency, scripts: []string{`function GetDependencies(o) return {{apiVersion = "v1", kind = "Secret", namespace = "shop", name = "b"}, {apiVersion = "v1", kind = "ConfigMap", namespace = "shop", name = "c"}} end`, `function GetDependencies(o) return {{apiVersion = "v1", kind = "Secret", namespace = "shop", name = "a"}, {apiVersion = "v1", kind = "Secret", namespace = "shop", name = "b"}} end`}, want: `[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"c"},{"apiVersion":"v1","kind":"Secret","namespace":"shop","name":"a"},{"apiVersion":"v1","kind":"Secret","namespace":"shop","name":"b"}]`},
		"no dependencies":                            {operation: dependency, scripts: []string{`function GetDependencies(o) return {} end`}, want: `[]`},
		"a dependency without an API version":        {operation: dependency, scripts: []string{`function GetDependencies(o) return {} end`, `function GetDependencies(o) return {{kind = "Secret", name = "a"}} end`}, wantErr: "InterpretDependency: dependency 0: apiVersion is missing"},
		"dependencies that are nil":                  {operation: dependency, scripts: []string{`function GetDependencies(o) end`}, wantErr: "the function returned nil, not a list of dependencies"},
		"a missing function":                         {operation: health, scripts: []string{`function Healthy(o) return true end`}, wantErr: "customization workload, InterpretHealth: not found function InterpretHealth: define it as a global function"},
		"a function that is a table":                 {operation: health, scripts: []string{`InterpretHealth = {}`}, wantErr: "InterpretHealth is a table, not a function"},
		"a script that does not compile":             {operation: health, scripts: []string{"function InterpretHealth(o)\n  retrun true\nend"}, wantErr: "customization workload, InterpretHealth: the script does not compile: line 2, column 13: parse error near 'true'"},
		"a script with an error at the top":          {operation: health, scripts: []string{"\nlocal x = nil + 1"}, wantErr: "customization workload, InterpretHealth: line 2: cannot perform add operation between nil and number"},
		"a missing field":                            {operation: health, scripts: []string{"function InterpretHealth(o)\n\n  return o.statuz.ready end"}, wantErr: "customization workload, InterpretHealth: line 3: attempt to index a nil value with key 'ready'"},
		"a missing variable":                         {operation: health, scripts: []string{"function InterpretHealth(o) obj.x = 1 end"}, wantErr: "line 1: attempt to index a nil value with key 'x'"},
		"a call of nil":                              {operation: health, scripts: []string{"function InterpretHealth(o)\n return o.x() end"}, wantErr: "line 2: attempt to call a value that is not a function"},
		"a concatenation of nil":                     {operation: health, scripts: []string{"function InterpretHealth(o)\n return 'x' .. o.x end"}, wantErr: "line 2: attempt to concatenate a nil value"},
		"an error of the script":                     {operation: health, scripts: []string{"function InterpretHealth(o)\n error('bad') end"}, wantErr: "customization workload, InterpretHealth: line 2: bad"},
		"an error of a module":                       {operation: health, scripts: []string{"local tools = require('tools')\nfunction InterpretHealth(o) return tools.fail() end"}, wantErr: "customization workload, InterpretHealth: module tools, line 3: attempt to index a nil value with key 'y'"},
	}
	engine := mustNewEngine(t, Options{Modules: map[string]string{"tools": "local tools = {}\nfunction tools.fail()\n  return x.y\nend\nreturn tools"}})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := answer(t, engine, test.operation, test.scripts, test.observed, test.items)
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %s, %v, want an error with %q", got, err, test.wantErr)
				}
			case err != nil || got != test.want:
				t.Errorf("got %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func TestOperationsWithoutAScriptAreNil(t *testing.T) {
	if rules := rulesOf(mustNewEngine(t, Options{}), health, `function InterpretHealth() return true end`); rules.IsHealthy == nil || rules.Replicas != nil || rules.Dependencies != nil || rules.Retain != nil {
		t.Errorf("rules = %+v", rules)
	}
}
