package webhook

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// maxCachedKinds is the maximum number of kinds whose rules are cached. A control plane serves fewer.
const maxCachedKinds = 10_000

// Call sends a request to the webhook and returns its response. Its error names the address, the cause
// and the remedy, but not the webhook. It must be safe for concurrent use.
type Call func(
	ctx context.Context, hook *Hook, request *configv1alpha1.ResourceInterpreterContext,
) (*configv1alpha1.ResourceInterpreterContext, error)

// NewSource returns an immutable source of rules that call the given webhooks, which must be sorted by ID
// as Hooks returns them. newUID returns a new UID for each request.
func NewSource(hooks []*Hook, call Call, newUID func() types.UID) interpreter.Source {
	return &source{hooks: hooks, call: call, newUID: newUID, cached: map[schema.GroupVersionKind]interpreter.Rules{}}
}

type source struct {
	hooks  []*Hook
	call   Call
	newUID func() types.UID

	mu     sync.RWMutex
	cached map[schema.GroupVersionKind]interpreter.Rules
}

// Rules implements interpreter.Source.
func (s *source) Rules(kind schema.GroupVersionKind) interpreter.Rules {
	s.mu.RLock()
	rules, found := s.cached[kind]
	s.mu.RUnlock()
	if found {
		return rules
	}
	rules = s.newRules(kind)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cached) >= maxCachedKinds {
		clear(s.cached)
	}
	s.cached[kind] = rules
	return rules
}

func (s *source) newRules(kind schema.GroupVersionKind) interpreter.Rules {
	return interpreter.RulesOf(func(name configv1alpha1.InterpreterOperation) (*operation, bool) {
		hook := HookFor(s.hooks, name, kind)
		return &operation{name: name, kind: kind, hook: hook, source: s}, hook != nil
	})
}

// operation is an operation on a kind, with the webhook to call for it.
type operation struct {
	name   configv1alpha1.InterpreterOperation
	kind   schema.GroupVersionKind
	hook   *Hook
	source *source
}

// ask sends the request and returns the response if it is successful.
func (o *operation) ask(
	ctx context.Context, request *configv1alpha1.ResourceInterpreterRequest,
) (*configv1alpha1.ResourceInterpreterResponse, error) {
	request.UID = o.source.newUID()
	sent := &configv1alpha1.ResourceInterpreterContext{Request: request}
	sent.SetGroupVersionKind(contextKind)
	received, err := o.source.call(ctx, o.hook, sent)
	if err != nil {
		return nil, o.wrap(err)
	}
	response, err := successful(received, request.UID)
	if err != nil {
		return nil, o.wrap(err)
	}
	return response, nil
}

// wrap adds the webhook and the operation to the error.
func (o *operation) wrap(err error) error {
	return fmt.Errorf("webhook %s, %s: %w", o.hook.ID, o.name, err)
}
