package binder

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop/lookup"
	"karmada.io/karmada/internal/loop/patch"
)

// TemplatesOf returns the templates of the bindings with a claim. Karmada must have the index
// lookup.BindingsByPolicy.
func (b *Binder) TemplatesOf(ctx context.Context, claim policy.Claim) ([]templates.Ref, error) {
	claimed, err := b.claimedBindings(ctx, claim)
	found := make([]templates.Ref, len(claimed))
	for i, bound := range claimed {
		found[i] = templates.RefFromBinding(&bound.BindingSpec().Resource)
	}
	return found, err
}

// SuspendDeleted copies the suspension of a policy to the bindings that the policy claims and that
// are being deleted, so that a user can resume their deletion in the policy. Other bindings get the
// suspension when their templates are reconciled.
func (b *Binder) SuspendDeleted(ctx context.Context, p policy.Object) error {
	claimed, err := b.claimedBindings(ctx, policy.ClaimOf(p))
	if err != nil {
		return err
	}
	var failures []error
	for _, bound := range claimed {
		if bound.GetDeletionTimestamp() == nil {
			continue
		}
		desired := binding.Copy(bound)
		desired.BindingSpec().Suspension = policy.MergeSuspension(p.PropagationSpec().Suspension, bound.BindingSpec().Suspension)
		_, err := patch.Object(ctx, b.Karmada, bound, desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}

// claimedBindings returns the bindings with a claim. They are shared with the cache and must not be
// changed.
func (b *Binder) claimedBindings(ctx context.Context, claim policy.Claim) ([]binding.Object, error) {
	if claim.ID == "" {
		return nil, nil
	}
	options := []client.ListOption{lookup.BindingsByPolicy.Matching(claim.ID), client.UnsafeDisableDeepCopy}
	scopes := []bool{true, false}
	if !claim.IsCluster() {
		options, scopes = append(options, client.InNamespace(claim.Namespace)), scopes[:1]
	}
	var found []binding.Object
	for _, namespaced := range scopes {
		claimed, err := lookup.Bindings(ctx, b.Karmada, namespaced, options...)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", claim, err)
		}
		found = append(found, claimed...)
	}
	return found, nil
}

// Unclaim removes a claim from the binding of the template and returns the binding, or nil if the
// template has no binding. It does not change the binding of another template.
func (b *Binder) Unclaim(ctx context.Context, claim policy.Claim, r templates.Ref) (binding.Object, error) {
	bound, err := b.Find(ctx, r)
	if err != nil || bound == nil || !binding.IsOf(bound, r.Kind.GroupKind(), r.Key.Name) {
		return nil, err
	}
	return bound, b.unclaim(ctx, claim, bound)
}

// UnclaimLeftover removes a claim from the binding of a template that has no claim itself. The
// binding has such a claim if one reconcile created the binding while another reconcile released
// the template.
func (b *Binder) UnclaimLeftover(ctx context.Context, template *unstructured.Unstructured, bound binding.Object) error {
	if bound == nil || !metav1.IsControlledBy(bound, template) {
		return nil
	}
	claim, claimed := policy.ClaimedBy(bound)
	if !claimed {
		return nil
	}
	return b.unclaim(ctx, claim, bound)
}

func (b *Binder) unclaim(ctx context.Context, claim policy.Claim, bound binding.Object) error {
	released := binding.Copy(bound)
	if !claim.Remove(released) {
		return nil
	}
	_, err := patch.Object(ctx, b.Karmada, bound, released)
	return client.IgnoreNotFound(err)
}
