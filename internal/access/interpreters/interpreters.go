// Package interpreters constructs the interpreter of a process, and notifies the controllers of
// changed rules.
//
// Invariants:
//
//   - All users of the interpreter construct it with this package, so that all of them use the same
//     rules.
//   - A controller observes the rules before its first reconcile. For every later change, either
//     the change is handled, or a reconcile that started after the change has already used the new
//     rules.
//   - Changes that arrive while an observer handles earlier changes are combined and handled
//     together. So the memory for unhandled changes is limited, even if an observer never handles
//     them.
//   - Only objects of changed kinds are queued, and they are queued behind all changes by users.
package interpreters

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/access/interpreters/hook"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/builtin"
	"karmada.io/karmada/internal/domain/interpreter/script"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

// Options configure the interpreter.
type Options struct {
	// ResourceQuotaEstimate is the value of the feature gate with this name. If it is true, the
	// requirements of replicas contain the priority class. The default is false.
	ResourceQuotaEstimate bool
	// Now returns the current time, for deadlines and for the conditions of templates. nil means the
	// system clock.
	Now func() time.Time
	// Print receives the lines that scripts print. nil discards them.
	Print func(line string)
	// Services returns a Service of the control plane, for webhooks that refer to a Service. nil means
	// that such webhooks are called by the DNS name of the Service.
	Services func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	// CallWebhook calls a webhook. nil means over HTTPS.
	CallWebhook webhook.Call
}

// Interpreter is the interpreter of a process. Its sources are, in order of precedence: the
// ResourceInterpreterCustomizations and the ResourceInterpreterWebhookConfigurations in the control
// plane, the shipped customizations of well-known kinds, and the built-in rules. It has no rules of
// the control plane until Load is called. It is safe for concurrent use.
type Interpreter struct {
	*interpreter.Interpreter
	sources    []DescribedSource
	customized customizedRules
	webhooks   *webhookRules
}

// New returns the interpreter of a process.
func New(o Options) (*Interpreter, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	engine, err := script.NewEngine(script.Options{
		Now: o.Now, ResourceQuotaEstimate: o.ResourceQuotaEstimate, Print: o.Print, Modules: builtin.Modules(),
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the script engine: %w", err)
	}
	shipped, err := newShippedRules(engine)
	if err != nil {
		return nil, err
	}
	if o.CallWebhook == nil {
		o.CallWebhook = hook.New(hook.Options{Services: o.Services, Now: o.Now}).Call
	}
	made := &Interpreter{customized: customizedRules{engine: engine}, webhooks: newWebhookRules(o.CallWebhook)}
	made.sources = []DescribedSource{
		{&made.customized, made.customized.describe},
		{made.webhooks, made.webhooks.describe},
		{shipped, describeAs("the rules that Karmada ships for kinds of other projects")},
		{builtin.New(builtin.Options{ResourceQuotaEstimate: o.ResourceQuotaEstimate, Now: o.Now}), describeAs("the built-in rules")},
	}
	sources := make([]interpreter.Source, 0, len(made.sources))
	for _, source := range made.sources {
		sources = append(sources, source.Source)
	}
	made.Interpreter = interpreter.New(sources...)
	return made, nil
}

// Load replaces the configured rules by those of the objects in the control plane. If it returns an
// error, the rules are unchanged.
func (i *Interpreter) Load(ctx context.Context, karmada client.Reader) error {
	var customizations configv1alpha1.ResourceInterpreterCustomizationList
	if err := karmada.List(ctx, &customizations); err != nil {
		return fmt.Errorf("listing the customizations of the control plane: %w", err)
	}
	var configurations configv1alpha1.ResourceInterpreterWebhookConfigurationList
	if err := karmada.List(ctx, &configurations); err != nil {
		return fmt.Errorf("listing the webhook configurations of the control plane: %w", err)
	}
	i.customized.setAll(pointersTo(customizations.Items))
	i.webhooks.setAll(pointersTo(configurations.Items))
	return nil
}

func pointersTo[T any](values []T) []*T {
	pointers := make([]*T, len(values))
	for i := range values {
		pointers[i] = &values[i]
	}
	return pointers
}
