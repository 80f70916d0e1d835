// Package webhook interprets objects with interpreter webhooks. It is a source of rules for package
// interpreter: it selects the webhook for an operation, builds the request and decodes the response.
// The caller provides the function that sends requests.
//
// Invariants:
//
//   - Of all webhooks with a rule that matches the operation and the kind, only the one whose ID sorts
//     first is called. If it fails, no other webhook is called.
//   - No response causes a panic. An invalid response causes an error that names the webhook, the
//     operation and the field.
//   - A patch changes only the fields that it names, and cannot change the object's apiVersion, kind,
//     namespace and name.
package webhook

import (
	"cmp"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

const (
	// DefaultTimeout is the timeout of a webhook without timeoutSeconds.
	DefaultTimeout = 10 * time.Second
	// maxTimeout is the maximum of timeoutSeconds. Admission rejects higher values.
	maxTimeout = 30 * time.Second
)

// Hook is an immutable interpreter webhook.
type Hook struct {
	// ID is <configuration name>/<webhook name>.
	ID string
	// Client holds the address and the CA bundle.
	Client admissionregistrationv1.WebhookClientConfig
	// Timeout is the maximum duration of a call, and greater than 0.
	Timeout time.Duration
	// SendsTimeout is true if requests contain the timeout, because the configuration sets
	// timeoutSeconds.
	SendsTimeout bool
	// Rules select operations and kinds. The webhook is called if any of them matches.
	Rules []configv1alpha1.RuleWithOperations
}

// Hooks returns the configurations' webhooks, sorted by ID. It omits webhooks that do not support
// ResourceInterpreterContext v1alpha1.
func Hooks(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration) []*Hook {
	var hooks []*Hook
	for _, configuration := range configurations {
		for i := range configuration.Webhooks {
			configured := &configuration.Webhooks[i]
			if slices.Contains(configured.InterpreterContextVersions, configv1alpha1.GroupVersion.Version) {
				hooks = append(hooks, newHook(configuration.Name, configured))
			}
		}
	}
	slices.SortStableFunc(hooks, func(a, b *Hook) int { return cmp.Compare(a.ID, b.ID) })
	return hooks
}

func newHook(configuration string, configured *configv1alpha1.ResourceInterpreterWebhook) *Hook {
	copied := configured.DeepCopy()
	hook := &Hook{
		ID:      configuration + "/" + copied.Name,
		Client:  copied.ClientConfig,
		Timeout: DefaultTimeout,
		Rules:   copied.Rules,
	}
	if seconds := copied.TimeoutSeconds; seconds != nil && *seconds > 0 {
		hook.Timeout = min(time.Duration(*seconds)*time.Second, maxTimeout)
		hook.SendsTimeout = true
	}
	return hook
}

// matches reports whether one of the webhook's rules selects the operation on the kind.
func (h *Hook) matches(operation configv1alpha1.InterpreterOperation, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(h.Rules, func(rule configv1alpha1.RuleWithOperations) bool {
		return includes(rule.Operations, operation) && includes(rule.APIGroups, kind.Group) &&
			includes(rule.APIVersions, kind.Version) && includes(rule.Kinds, kind.Kind)
	})
}

// all stands for every operation, group, version or kind in a rule.
const all = "*"

func includes[T ~string](list []T, value T) bool {
	return slices.ContainsFunc(list, func(each T) bool { return each == value || each == all })
}

// HookFor returns the webhook to call for the operation on the kind, or nil if there is none. hooks must
// be sorted by ID.
func HookFor(hooks []*Hook, operation configv1alpha1.InterpreterOperation, kind schema.GroupVersionKind) *Hook {
	for _, hook := range hooks {
		if hook.matches(operation, kind) {
			return hook
		}
	}
	return nil
}
