// Package webhook interprets objects with the webhooks of users. It answers: which webhook
// interprets a kind, what does a request contain, and what does a response mean? It is a source of
// rules for package interpreter. The caller passes in the function that sends a request.
//
// Invariants:
//
//   - One webhook answers an operation on a kind: of all webhooks with a matching rule, the one whose
//     ID sorts first. If this webhook fails, no other webhook is called.
//   - No response makes this package panic. A response that is not exactly what the operation
//     requires is an error that names the webhook, the operation and the field.
//   - A patch changes only the values that it names. All other values of the object stay as they are.
//     A patch cannot change which object it is: apiVersion, kind, namespace and name.
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
	// DefaultTimeout limits a call of a webhook without timeoutSeconds.
	DefaultTimeout = 10 * time.Second
	// maxTimeout is the highest value of timeoutSeconds. Admission rejects higher values.
	maxTimeout = 30 * time.Second
)

// Hook is one webhook. It must not be changed after it is created.
type Hook struct {
	// ID is <name of the configuration>/<name of the webhook>.
	ID string
	// Client holds the address and the CA bundle.
	Client admissionregistrationv1.WebhookClientConfig
	// Timeout limits one call. It is more than 0.
	Timeout time.Duration
	// SendsTimeout reports whether a request tells the webhook the timeout. It is true if the
	// configuration sets timeoutSeconds.
	SendsTimeout bool
	// Rules select operations and kinds. The webhook answers if any of them matches.
	Rules []configv1alpha1.RuleWithOperations
}

// Hooks returns the webhooks of the configurations, sorted by ID. It omits webhooks that do not
// understand the version v1alpha1 of ResourceInterpreterContext.
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

// answers reports whether a rule of the webhook selects the operation on the kind.
func (h *Hook) answers(operation configv1alpha1.InterpreterOperation, kind schema.GroupVersionKind) bool {
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

// HookFor returns the webhook that answers the operation on the kind, or nil if there is none. The
// webhooks are sorted by ID.
func HookFor(hooks []*Hook, operation configv1alpha1.InterpreterOperation, kind schema.GroupVersionKind) *Hook {
	for _, hook := range hooks {
		if hook.answers(operation, kind) {
			return hook
		}
	}
	return nil
}
