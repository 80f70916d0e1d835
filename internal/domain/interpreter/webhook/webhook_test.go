package webhook

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

type (
	configuration = configv1alpha1.ResourceInterpreterWebhookConfiguration
	operations    = []configv1alpha1.InterpreterOperation
)

var workloadKind = schema.GroupVersionKind{Group: "workload.example.io", Version: "v1alpha1", Kind: "Workload"}

// newConfiguration returns a configuration with one webhook for each change.
func newConfiguration(name string, changes ...func(*configv1alpha1.ResourceInterpreterWebhook)) *configuration {
	made := &configuration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i, change := range changes {
		configured := configv1alpha1.ResourceInterpreterWebhook{
			Name:                       fmt.Sprintf("%c.example.io", 'a'+i),
			ClientConfig:               admissionregistrationv1.WebhookClientConfig{URL: new("https://example.io/interpret")},
			Rules:                      []configv1alpha1.RuleWithOperations{newRule(operations{"*"}, "Workload")},
			InterpreterContextVersions: []string{"v1alpha1"},
		}
		change(&configured)
		made.Webhooks = append(made.Webhooks, configured)
	}
	return made
}

func newRule(operations operations, kinds ...string) configv1alpha1.RuleWithOperations {
	return configv1alpha1.RuleWithOperations{
		Operations: operations,
		Rule:       configv1alpha1.Rule{APIGroups: []string{workloadKind.Group}, APIVersions: []string{workloadKind.Version}, Kinds: kinds},
	}
}

func unchanged(*configv1alpha1.ResourceInterpreterWebhook) {}

func withRules(rules ...configv1alpha1.RuleWithOperations) func(*configv1alpha1.ResourceInterpreterWebhook) {
	return func(w *configv1alpha1.ResourceInterpreterWebhook) { w.Rules = rules }
}

func TestHooksAreSortedAndUnderstandOurVersion(t *testing.T) {
	otherVersion := func(w *configv1alpha1.ResourceInterpreterWebhook) { w.InterpreterContextVersions = []string{"v2"} }
	hooks := Hooks([]*configuration{newConfiguration("b", unchanged, otherVersion, unchanged), newConfiguration("a", unchanged), newConfiguration("a-b", unchanged)})
	var ids []string
	for _, hook := range hooks {
		ids = append(ids, hook.ID)
	}
	// "-" sorts before "/".
	if diff := cmp.Diff([]string{"a-b/a.example.io", "a/a.example.io", "b/a.example.io", "b/c.example.io"}, ids); diff != "" {
		t.Errorf("IDs (-want +got):\n%s", diff)
	}
}

func TestTimeoutOfHook(t *testing.T) {
	tests := map[string]struct {
		seconds *int32
		want    time.Duration
		isSent  bool
	}{
		"the default is 10 seconds and is not sent":   {want: 10 * time.Second},
		"a configured timeout is sent":                {seconds: new(int32(3)), want: 3 * time.Second, isSent: true},
		"a value that admission rejects is the limit": {seconds: new(int32(300)), want: 30 * time.Second, isSent: true},
		"0 is no timeout":                             {seconds: new(int32(0)), want: 10 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			hook := Hooks([]*configuration{newConfiguration("a", func(w *configv1alpha1.ResourceInterpreterWebhook) { w.TimeoutSeconds = test.seconds })})[0]
			if hook.Timeout != test.want || hook.SendsTimeout != test.isSent {
				t.Errorf("timeout %s, sent: %t", hook.Timeout, hook.SendsTimeout)
			}
		})
	}
}

func TestHookForOperation(t *testing.T) {
	const health, replica = configv1alpha1.InterpreterOperationInterpretHealth, configv1alpha1.InterpreterOperationInterpretReplica
	wildcards := newRule(operations{health}, "*")
	wildcards.APIGroups, wildcards.APIVersions = []string{"*"}, []string{"*"}
	tests := map[string]struct {
		configurations []*configuration
		kind           schema.GroupVersionKind
		operation      configv1alpha1.InterpreterOperation
		want           string
	}{
		"every operation":                        {configurations: []*configuration{newConfiguration("a", unchanged)}, operation: health, want: "a/a.example.io"},
		"the listed operations":                  {configurations: []*configuration{newConfiguration("a", withRules(newRule(operations{replica, health}, "Other", "Workload")))}, operation: health, want: "a/a.example.io"},
		"another operation":                      {configurations: []*configuration{newConfiguration("a", withRules(newRule(operations{replica}, "Workload")))}, operation: health},
		"another kind":                           {configurations: []*configuration{newConfiguration("a", withRules(newRule(operations{health}, "Other")))}, operation: health},
		"another version":                        {configurations: []*configuration{newConfiguration("a", unchanged)}, kind: schema.GroupVersionKind{Group: workloadKind.Group, Version: "v1", Kind: workloadKind.Kind}, operation: health},
		"another group":                          {configurations: []*configuration{newConfiguration("a", unchanged)}, kind: schema.GroupVersionKind{Version: workloadKind.Version, Kind: workloadKind.Kind}, operation: health},
		"every kind":                             {configurations: []*configuration{newConfiguration("a", withRules(wildcards))}, operation: health, want: "a/a.example.io"},
		"no webhook":                             {operation: health},
		"the second rule of a webhook":           {configurations: []*configuration{newConfiguration("a", withRules(newRule(operations{replica}, "Workload"), newRule(operations{health}, "Workload")))}, operation: health, want: "a/a.example.io"},
		"the first ID by text":                   {configurations: []*configuration{newConfiguration("b", unchanged), newConfiguration("a", unchanged)}, operation: health, want: "a/a.example.io"},
		"the first webhook with a matching rule": {configurations: []*configuration{newConfiguration("b", unchanged), newConfiguration("a", withRules(newRule(operations{replica}, "Workload")))}, operation: health, want: "b/a.example.io"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.kind.Empty() {
				test.kind = workloadKind
			}
			got := ""
			if hook := HookFor(Hooks(test.configurations), test.operation, test.kind); hook != nil {
				got = hook.ID
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestChangedKinds(t *testing.T) {
	const health, replica = configv1alpha1.InterpreterOperationInterpretHealth, configv1alpha1.InterpreterOperationInterpretReplica
	manyKinds := make([]string, 1001)
	for i := range manyKinds {
		manyKinds[i] = fmt.Sprintf("Kind%d", i)
	}
	everyVersion := newRule(operations{"*"}, "Workload")
	everyVersion.APIVersions = []string{"*"}
	huge := newRule(operations{"*"}, manyKinds...)
	huge.APIGroups, huge.APIVersions = manyKinds, manyKinds
	workload := newConfiguration("b", withRules(newRule(operations{health}, "Workload")))
	tests := map[string]struct {
		before, after []*configuration
		want          []string
		isAll         bool
	}{
		"nothing changed":        {before: []*configuration{workload}, after: []*configuration{workload.DeepCopy()}},
		"an added webhook":       {after: []*configuration{workload}, want: []string{"Workload"}},
		"a removed webhook":      {before: []*configuration{workload}, want: []string{"Workload"}},
		"an added kind":          {before: []*configuration{workload}, after: []*configuration{newConfiguration("b", withRules(newRule(operations{health}, "Workload", "Other")))}, want: []string{"Other"}},
		"an added operation":     {before: []*configuration{workload}, after: []*configuration{newConfiguration("b", withRules(newRule(operations{health, replica}, "Workload")))}, want: []string{"Workload"}},
		"rules in another order": {before: []*configuration{newConfiguration("b", withRules(newRule(operations{health}, "A"), newRule(operations{replica}, "B")))}, after: []*configuration{newConfiguration("b", withRules(newRule(operations{replica}, "B"), newRule(operations{health}, "A")))}},
		"another timeout":        {before: []*configuration{newConfiguration("b", unchanged)}, after: []*configuration{newConfiguration("b", func(w *configv1alpha1.ResourceInterpreterWebhook) { w.TimeoutSeconds = new(int32(10)) })}, want: []string{"Workload"}},
		"another address": {before: []*configuration{workload}, after: []*configuration{newConfiguration("b", func(w *configv1alpha1.ResourceInterpreterWebhook) {
			w.ClientConfig.URL = new("https://example.io/other")
		})}, want: []string{"Workload"}},
		"another CA bundle":          {before: []*configuration{newConfiguration("b", unchanged)}, after: []*configuration{newConfiguration("b", func(w *configv1alpha1.ResourceInterpreterWebhook) { w.ClientConfig.CABundle = []byte("x") })}, want: []string{"Workload"}},
		"a later webhook":            {before: []*configuration{workload}, after: []*configuration{workload, newConfiguration("c", withRules(newRule(operations{health}, "Workload")))}},
		"an earlier webhook":         {before: []*configuration{workload}, after: []*configuration{workload, newConfiguration("a", withRules(newRule(operations{health}, "Workload")))}, want: []string{"Workload"}},
		"another webhook":            {before: []*configuration{workload}, after: []*configuration{workload, newConfiguration("a", withRules(newRule(operations{health}, "Other")))}, want: []string{"Other"}},
		"a rule for every version":   {before: []*configuration{workload}, after: []*configuration{newConfiguration("b", withRules(everyVersion))}, isAll: true},
		"an unchanged wildcard":      {before: []*configuration{newConfiguration("b", withRules(everyVersion))}, after: []*configuration{newConfiguration("b", withRules(everyVersion)), newConfiguration("c", withRules(newRule(operations{health}, "Other")))}, want: []string{"Other"}},
		"more kinds than we list":    {after: []*configuration{newConfiguration("b", withRules(huge))}, isAll: true},
		"another configured version": {before: []*configuration{workload}, after: []*configuration{newConfiguration("b", func(w *configv1alpha1.ResourceInterpreterWebhook) { w.InterpreterContextVersions = []string{"v2"} })}, want: []string{"Workload"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := Changed(Hooks(test.before), Hooks(test.after))
			var kinds []string
			for _, kind := range changed.List() {
				kinds = append(kinds, kind.Kind)
			}
			if diff := cmp.Diff(test.want, kinds); diff != "" || changed.IsAll() != test.isAll {
				t.Errorf("all: %t, kinds (-want +got):\n%s", changed.IsAll(), diff)
			}
			if back := Changed(Hooks(test.after), Hooks(test.before)); back.IsAll() != changed.IsAll() || !slices.Equal(back.List(), changed.List()) {
				t.Errorf("the change back has the kinds %v", back.List())
			}
		})
	}
}
