package interpreters

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

// webhookRules is the source of the rules of ResourceInterpreterWebhookConfigurations.
type webhookRules struct {
	Announcer
	call webhook.Call

	mu      sync.RWMutex
	hooks   []*webhook.Hook
	current interpreter.Source
}

func newWebhookRules(call webhook.Call) *webhookRules {
	return &webhookRules{call: call, current: interpreter.New()}
}

// Rules implements interpreter.Source.
func (w *webhookRules) Rules(kind schema.GroupVersionKind) interpreter.Rules {
	w.mu.RLock()
	current := w.current
	w.mu.RUnlock()
	return current.Rules(kind)
}

// setAll replaces all configurations. It announces only the kinds whose responses may differ.
func (w *webhookRules) setAll(configurations []*configv1alpha1.ResourceInterpreterWebhookConfiguration) {
	hooks := webhook.Hooks(configurations)
	w.mu.Lock()
	changed := webhook.Changed(w.hooks, hooks)
	w.hooks, w.current = hooks, webhook.NewSource(hooks, w.call, uuid.NewUUID)
	w.mu.Unlock()
	w.Announce(changed)
}

// describe returns the ID of the webhook that interprets the operation.
func (w *webhookRules) describe(kind schema.GroupVersionKind, operation configv1alpha1.InterpreterOperation) string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	description := configv1alpha1.ResourceKindResourceInterpreterWebhookConfiguration
	if hook := webhook.HookFor(w.hooks, operation, kind); hook != nil {
		description += " " + hook.ID
	}
	return description
}

// ServicesOf returns the function with which webhooks find Services of the control plane. It needs
// only the permission to list Services, because the agents of upstream Karmada have no other.
func ServicesOf(karmada client.Reader) func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.Service, error) {
		var found corev1.ServiceList
		if err := karmada.List(ctx, &found, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name}); err != nil {
			return nil, err
		}
		if len(found.Items) == 0 {
			return nil, apierrors.NewNotFound(corev1.Resource("services"), name)
		}
		return &found.Items[0], nil
	}
}
