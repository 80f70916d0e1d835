package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

// rulesAnswering returns the rules of a webhook that responds with the given body. The requests are
// stored in sent.
func rulesAnswering(body string, sent *string) interpreter.Rules {
	call := func(_ context.Context, _ *Hook, request *configv1alpha1.ResourceInterpreterContext) (*configv1alpha1.ResourceInterpreterContext, error) {
		text, err := json.Marshal(request)
		if sent != nil {
			*sent = string(text)
		}
		if err != nil {
			return nil, err
		}
		return Decode([]byte(body))
	}
	return NewSource(Hooks([]*configuration{newConfiguration("example", unchanged)}), call, func() types.UID { return "1" }).Rules(workloadKind)
}

func newWorkload(t testing.TB, fields string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text := `{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{"name":"nginx","namespace":"default"}` + fields + `}`
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

// interpret runs one operation on a template with two replicas, and returns its result.
func interpret(t testing.TB, rules interpreter.Rules, operation configv1alpha1.InterpreterOperation) (any, error) {
	t.Helper()
	ctx, object, observed := t.Context(), newWorkload(t, `,"spec":{"replicas":2,"id":9007199254740993}`), newWorkload(t, `,"spec":{"replicas":3}`)
	before := object.DeepCopy()
	defer func() {
		if !reflect.DeepEqual(before, object) {
			t.Errorf("%s changed its argument", operation)
		}
	}()
	asText := func(result *unstructured.Unstructured, err error) (any, error) {
		if err != nil || result == object {
			return "unchanged", err
		}
		text, err := json.Marshal(result.Object)
		return string(text), err
	}
	switch operation {
	case configv1alpha1.InterpreterOperationInterpretReplica:
		replicas, requirements, err := rules.Replicas(ctx, object)
		return []any{replicas, requirements}, err
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return rules.Components(ctx, object)
	case configv1alpha1.InterpreterOperationReviseReplica:
		return asText(rules.ReviseReplicas(ctx, object, 5))
	case configv1alpha1.InterpreterOperationRetain:
		return asText(rules.Retain(ctx, object, observed))
	case configv1alpha1.InterpreterOperationAggregateStatus:
		return asText(rules.AggregateStatus(ctx, object, []workv1alpha2.AggregatedStatusItem{{ClusterName: "member1", Status: &runtime.RawExtension{Raw: []byte(`{"ready":1}`)}, Applied: true, Health: "Healthy"}}))
	case configv1alpha1.InterpreterOperationInterpretStatus:
		status, err := rules.ReflectStatus(ctx, object)
		if err != nil {
			return nil, err
		}
		return string(status.Raw), nil
	case configv1alpha1.InterpreterOperationInterpretHealth:
		return rules.IsHealthy(ctx, object)
	default:
		return rules.Dependencies(ctx, object)
	}
}

func TestRequestOnTheWire(t *testing.T) {
	const (
		head   = `{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{"uid":"1","kind":{"group":"workload.example.io","version":"v1alpha1","kind":"Workload"},"name":"nginx","namespace":"default","operation":`
		object = `"object":{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{"name":"nginx","namespace":"default"},"spec":{"id":9007199254740993,"replicas":2}}`
	)
	tests := map[configv1alpha1.InterpreterOperation]string{
		"InterpretReplica":    head + `"InterpretReplica",` + object + `,"replicas":0}}`,
		"InterpretComponent":  head + `"InterpretComponent",` + object + `,"replicas":0}}`,
		"InterpretDependency": head + `"InterpretDependency",` + object + `,"replicas":0}}`,
		"InterpretStatus":     head + `"InterpretStatus",` + object + `,"replicas":0}}`,
		"InterpretHealth":     head + `"InterpretHealth",` + object + `,"replicas":0}}`,
		"ReviseReplica":       head + `"ReviseReplica",` + object + `,"replicas":5}}`,
		"Retain": head + `"Retain",` + object + `,"observedObject":{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload",` +
			`"metadata":{"name":"nginx","namespace":"default"},"spec":{"replicas":3}},"replicas":0}}`,
		"AggregateStatus": head + `"AggregateStatus",` + object + `,"replicas":0,"aggregatedStatus":[{"clusterName":"member1","status":{"ready":1},"applied":true,"health":"Healthy"}]}}`,
	}
	for operation, want := range tests {
		t.Run(string(operation), func(t *testing.T) {
			var sent string
			interpret(t, rulesAnswering(`{}`, &sent), operation)
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// answer returns the body of a successful response with the given fields.
func answer(fields string) string { return `{"response":{"uid":"1","successful":true` + fields + `}}` }

func TestResponses(t *testing.T) {
	// A patch of /spec/replicas to 5, of /status to {"ready":1}, and of the name.
	const (
		replicasPatch  = `,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3JlcGxpY2FzIiwidmFsdWUiOjV9XQ=="`
		unchangedPatch = `,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3JlcGxpY2FzIiwidmFsdWUiOjJ9XQ=="`
		statusPatch    = `,"patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3N0YXR1cyIsInZhbHVlIjp7InJlYWR5IjoxfX0seyJvcCI6InJlbW92ZSIsInBhdGgiOiIvc3BlYyJ9XQ=="`
		namePatch      = `,"patchType":"JSONPatch","patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9tZXRhZGF0YS9uYW1lIiwidmFsdWUiOiJvdGhlciJ9XQ=="`
		head           = `{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","metadata":{"name":"nginx","namespace":"default"},`
	)
	tests := map[string]struct {
		operation configv1alpha1.InterpreterOperation
		body      string
		want      any
		fails     string
	}{
		"replicas without requirements":            {operation: "InterpretReplica", body: answer(`,"replicas":3`), want: []any{int32(3), (*workv1alpha2.ReplicaRequirements)(nil)}},
		"no replicas are 0":                        {operation: "InterpretReplica", body: answer(`,"replicas":0`), want: []any{int32(0), (*workv1alpha2.ReplicaRequirements)(nil)}},
		"requirements":                             {operation: "InterpretReplica", body: answer(`,"replicas":3,"replicaRequirements":{"priorityClassName":"high"}`), want: []any{int32(3), &workv1alpha2.ReplicaRequirements{PriorityClassName: "high"}}},
		"a response with kind and apiVersion":      {operation: "InterpretHealth", body: `{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","response":{"uid":"1","successful":true,"healthy":true}}`, want: true},
		"missing replicas":                         {operation: "InterpretReplica", body: answer(``), fails: "webhook returned nil response.replicas: set it"},
		"null replicas":                            {operation: "InterpretReplica", body: answer(`,"replicas":null`), fails: "webhook returned nil response.replicas"},
		"negative replicas":                        {operation: "InterpretReplica", body: answer(`,"replicas":-1`), fails: "response.replicas -1: return 0 or more"},
		"too many replicas":                        {operation: "InterpretReplica", body: answer(`,"replicas":3000000000`), fails: "response.replicas is a JSON number 3000000000"},
		"replicas of a wrong type":                 {operation: "InterpretReplica", body: answer(`,"replicas":"3"`), fails: "response.replicas is a JSON string"},
		"a quantity that is none":                  {operation: "InterpretReplica", body: answer(`,"replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"many"}}`), fails: "no ResourceInterpreterContext in JSON"},
		"a quantity that takes forever":            {operation: "InterpretReplica", body: answer(`,"replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e-2147483648","cpu":"1"}}`), fails: `the quantity "1e-2147483648" has an exponent`},
		"a number that takes forever":              {operation: "InterpretReplica", body: answer(`,"replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":1e-2147483648}}`), fails: `the quantity "1e-2147483648" has an exponent`},
		"a quantity without a limit":               {operation: "InterpretReplica", body: answer(`,"replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e64"}}`), fails: `response.replicaRequirements: the quantity of resource "cpu" is not between 0 and`},
		"a negative quantity of a component":       {operation: "InterpretComponent", body: answer(`,"components":[{"name":"a","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"-1"}}}]`), fails: `response.components[0].replicaRequirements: the quantity of resource "cpu" is not between 0 and`},
		"a component whose quantity takes forever": {operation: "InterpretComponent", body: answer(`,"components":[{"name":"a","replicas":1,"replicaRequirements":{"resourceRequest":{"cpu":"1e-2147483648"}}}]`), fails: `the quantity "1e-2147483648" has an exponent`},
		"components":                               {operation: "InterpretComponent", body: answer(`,"components":[{"name":"a","replicas":1},{"name":"b","replicas":0}]`), want: []workv1alpha2.Component{{Name: "a", Replicas: 1}, {Name: "b"}}},
		"no components":                            {operation: "InterpretComponent", body: answer(``), want: []workv1alpha2.Component(nil)},
		"a component without a name":               {operation: "InterpretComponent", body: answer(`,"components":[{"replicas":1}]`), fails: "response.components[0] without a name"},
		"two components with one name":             {operation: "InterpretComponent", body: answer(`,"components":[{"name":"a","replicas":1},{"name":"a","replicas":1}]`), fails: `two components with the name "a"`},
		"a component with negative replicas":       {operation: "InterpretComponent", body: answer(`,"components":[{"name":"a","replicas":-2}]`), fails: "response.components[0].replicas -2"},
		"dependencies":                             {operation: "InterpretDependency", body: answer(`,"dependencies":[{"apiVersion":"v1","kind":"Secret","namespace":"default","name":"a"}]`), want: []configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "Secret", Namespace: "default", Name: "a"}}},
		"a dependency without an API version":      {operation: "InterpretDependency", body: answer(`,"dependencies":[{"kind":"Secret","name":"a"}]`), fails: "response.dependencies: dependency 0: apiVersion is missing"},
		"no dependencies":                          {operation: "InterpretDependency", body: answer(``), want: []configv1alpha1.DependentObjectReference(nil)},
		"a status":                                 {operation: "InterpretStatus", body: answer(`,"rawStatus":{"b": 9007199254740993,"a":[]}`), want: `{"b": 9007199254740993,"a":[]}`},
		"missing status":                           {operation: "InterpretStatus", body: answer(``), fails: "webhook returned nil response.rawStatus"},
		"null as the status":                       {operation: "InterpretStatus", body: answer(`,"rawStatus":null`), fails: "webhook returned nil response.rawStatus"},
		"a status that is a list":                  {operation: "InterpretStatus", body: answer(`,"rawStatus":[1]`), fails: "response.rawStatus that is no object"},
		"a healthy object":                         {operation: "InterpretHealth", body: answer(`,"healthy":true`), want: true},
		"an unhealthy object":                      {operation: "InterpretHealth", body: answer(`,"healthy":false`), want: false},
		"missing health":                           {operation: "InterpretHealth", body: answer(``), fails: "webhook returned nil response.healthy"},
		"no patch changes nothing":                 {operation: "ReviseReplica", body: answer(``), want: "unchanged"},
		"a patch without effect changes nothing":   {operation: "ReviseReplica", body: answer(unchangedPatch), want: "unchanged"},
		"a patch":                                  {operation: "ReviseReplica", body: answer(replicasPatch), want: head + `"spec":{"id":9007199254740993,"replicas":5}}`},
		"a patch of the desired object":            {operation: "Retain", body: answer(replicasPatch), want: head + `"spec":{"id":9007199254740993,"replicas":5}}`},
		"only the status is aggregated":            {operation: "AggregateStatus", body: answer(statusPatch), want: head + `"spec":{"id":9007199254740993,"replicas":2},"status":{"ready":1}}`},
		"an aggregation that changes no status":    {operation: "AggregateStatus", body: answer(replicasPatch), want: "unchanged"},
		"a patch that changes the name":            {operation: "Retain", body: answer(namePatch), fails: "response.patch changes metadata.name, which identifies the object"},
		"a patch without a type":                   {operation: "Retain", body: answer(`,"patch":"W10="`), fails: "webhook returned nil response.patchType"},
		"a type without a patch":                   {operation: "Retain", body: answer(`,"patchType":"JSONPatch"`), fails: "webhook returned nil response.patch with"},
		"another type of patch":                    {operation: "Retain", body: answer(`,"patch":"W10=","patchType":"MergePatch"`), fails: `response.patchType "MergePatch": only "JSONPatch" is supported`},
		"a patch that is not base64":               {operation: "Retain", body: answer(`,"patch":"{}","patchType":"JSONPatch"`), fails: "no ResourceInterpreterContext in JSON"},
		"a patch that is no list":                  {operation: "Retain", body: answer(`,"patch":"e30=","patchType":"JSONPatch"`), fails: "it is no JSON Patch (RFC 6902)"},
		"no response":                              {operation: "InterpretHealth", body: `{}`, fails: "webhook returned nil response: set it"},
		"a null response":                          {operation: "InterpretHealth", body: `{"response":null}`, fails: "webhook returned nil response: set it"},
		"null":                                     {operation: "InterpretHealth", body: `null`, fails: "webhook returned nil response: set it"},
		"another uid":                              {operation: "InterpretHealth", body: `{"response":{"uid":"2","successful":true,"healthy":true}}`, fails: `expected response.uid as in the request, got another one: copy request.uid`},
		"a missing uid":                            {operation: "InterpretHealth", body: `{"response":{"successful":true,"healthy":true}}`, fails: `expected response.uid as in the request, got "": copy`},
		"another kind":                             {operation: "InterpretHealth", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"1","successful":true,"healthy":true}}`, fails: `webhook returned kind "AdmissionReview"`},
		"a failure with its reason":                {operation: "InterpretHealth", body: `{"response":{"uid":"1","successful":false,"status":{"message":"no such field","code":403}}}`, fails: "webhook call failed, get status code: 403, msg: no such field"},
		"a failure without a reason":               {operation: "InterpretHealth", body: `{"response":{"uid":"1","successful":false}}`, fails: "webhook returned nil response.status"},
		"a failure ignores the other fields":       {operation: "InterpretHealth", body: `{"response":{"uid":"1","healthy":true,"status":{"message":"no","code":500}}}`, fails: "webhook call failed, get status code: 500, msg: no"},
		"a failure with a long reason":             {operation: "InterpretHealth", body: `{"response":{"uid":"1","status":{"message":"` + strings.Repeat("x", 10000) + `"}}}`, fails: "xxx..."},
		"text instead of JSON":                     {operation: "InterpretHealth", body: `hello`, fails: "no ResourceInterpreterContext in JSON"},
		"a list instead of an object":              {operation: "InterpretHealth", body: `[]`, fails: "the response has a wrong type"},
		"two documents":                            {operation: "InterpretHealth", body: answer(`,"healthy":true`) + `{}`, fails: "no ResourceInterpreterContext in JSON"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := interpret(t, rulesAnswering(test.body, nil), test.operation)
			if test.fails != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "webhook example/a.example.io, "+string(test.operation)+": ") || !strings.Contains(err.Error(), test.fails) || len(err.Error()) > 1000 {
					t.Fatalf("err = %v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRevisionRefusesReplicasOutOfRange(t *testing.T) {
	for _, replicas := range []int64{-1, 1 << 31} {
		if _, err := rulesAnswering(answer(``), nil).ReviseReplicas(t.Context(), newWorkload(t, ""), replicas); err == nil {
			t.Errorf("%d replicas are sent", replicas)
		}
	}
}

func TestErrorsOfCallsNameWebhookAndOperation(t *testing.T) {
	cause := errors.New("https://example.io: connection refused")
	call := func(context.Context, *Hook, *configv1alpha1.ResourceInterpreterContext) (*configv1alpha1.ResourceInterpreterContext, error) {
		return nil, cause
	}
	rules := NewSource(Hooks([]*configuration{newConfiguration("example", unchanged)}), call, func() types.UID { return "1" }).Rules(workloadKind)
	for operation := range everyOperation() {
		_, err := interpret(t, rules, operation)
		if want := "webhook example/a.example.io, " + string(operation) + ": " + cause.Error(); !errors.Is(err, cause) || err.Error() != want {
			t.Errorf("err = %v, want %s", err, want)
		}
	}
}

func TestRulesExistOnlyForConfiguredOperations(t *testing.T) {
	hooks := Hooks([]*configuration{newConfiguration("a", withRules(newRule(operations{"InterpretHealth"}, "Workload")))})
	source := NewSource(hooks, nil, nil)
	rules := source.Rules(workloadKind)
	if rules.IsHealthy == nil || rules.Replicas != nil || rules.Components != nil || rules.ReviseReplicas != nil || rules.Retain != nil ||
		rules.AggregateStatus != nil || rules.ReflectStatus != nil || rules.Dependencies != nil {
		t.Errorf("rules: %+v", rules)
	}
	if allocations := testing.AllocsPerRun(10, func() { source.Rules(workloadKind) }); allocations > 0 {
		t.Errorf("cached rules need %v allocations", allocations)
	}
}

func TestEachRequestHasItsOwnUID(t *testing.T) {
	var uids []types.UID
	call := func(_ context.Context, _ *Hook, request *configv1alpha1.ResourceInterpreterContext) (*configv1alpha1.ResourceInterpreterContext, error) {
		uids = append(uids, request.Request.UID)
		return &configv1alpha1.ResourceInterpreterContext{Response: &configv1alpha1.ResourceInterpreterResponse{UID: request.Request.UID, Successful: true, Healthy: new(true)}}, nil
	}
	number := 0
	rules := NewSource(Hooks([]*configuration{newConfiguration("a", unchanged)}), call, func() types.UID { number++; return types.UID(rune('0' + number)) }).Rules(workloadKind)
	for range 2 {
		if _, err := rules.IsHealthy(t.Context(), newWorkload(t, "")); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]types.UID{"1", "2"}, uids); diff != "" {
		t.Errorf("UIDs (-want +got):\n%s", diff)
	}
}
