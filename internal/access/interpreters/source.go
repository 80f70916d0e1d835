package interpreters

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
)

// NewSource returns a source for a controller that interprets objects. When rules change, the
// source queues the requests of the changed kinds with low priority. The list function must return
// every object of these kinds that a reconcile may have read before the call.
func NewSource[request comparable](rules interpreter.Source,
	list func(context.Context, interpreter.Kinds) []request) source.TypedSource[request] {
	changes := Observe(rules)
	return source.TypedFunc[request](func(ctx context.Context, queue loop.Queue[request]) error {
		go changes.Handle(ctx, func(ctx context.Context, kinds interpreter.Kinds) {
			loop.EnqueueLowPriority(queue, 0, list(ctx, kinds)...)
		})
		return nil
	})
}

// BindingsOf returns a list function for NewSource, for a controller that reconciles the bindings
// of one scope. The list function returns the bindings whose template has one of the given kinds.
// isRelevant selects among these bindings, and nil selects all of them. from is a cache with the
// index loop.BindingsByTemplate.
func BindingsOf(from client.Reader, namespaced bool,
	isRelevant func(binding.Object) bool) func(context.Context, interpreter.Kinds) []reconcile.Request {
	return func(ctx context.Context, kinds interpreter.Kinds) []reconcile.Request {
		found, err := listBindings(ctx, from, namespaced, kinds)
		if err != nil {
			// The error is only logged, because a cache returns an error only when the process ends
			// or an index is missing.
			klog.FromContext(ctx).Error(err, "Bindings are not queued after a change of interpreter rules")
		}
		var requests []reconcile.Request
		for _, bound := range found {
			if isRelevant == nil || isRelevant(bound) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bound)})
			}
		}
		return requests
	}
}

// listBindings returns the bindings of one scope whose template has one of the kinds. If the list
// of a kind fails, it returns the error and the bindings of the kinds listed before.
func listBindings(ctx context.Context, from client.Reader, namespaced bool, kinds interpreter.Kinds) ([]binding.Object, error) {
	if kinds.IsAll() {
		return loop.ListBindings(ctx, from, namespaced)
	}
	var found []binding.Object
	for _, kind := range kinds.List() {
		apiVersion, name := kind.ToAPIVersionAndKind()
		ofKind, err := loop.ListBindings(ctx, from, namespaced, loop.BindingsByTemplate.Matching(loop.TemplateKindKey("", apiVersion, name)))
		if err != nil {
			return found, fmt.Errorf("kind %s: %w", kind, err)
		}
		found = append(found, ofKind...)
	}
	return found, nil
}
