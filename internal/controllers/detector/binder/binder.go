// Package binder answers "what is in the binding of a template?". It creates and updates the
// binding of a template that a policy claims, and removes claims from bindings. Invariants:
//
//   - A missing binding is created completely in one request.
//   - A binding without a difference is not written.
//   - The binding of another template is not changed, and no binding is deleted.
package binder

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/lookup"
	"karmada.io/karmada/internal/loop/patch"
)

// Features enable the optional parts of a binding.
type Features struct {
	// MultiplePodTemplates stores the components of a template, which the interpreter returns, in
	// place of the replicas.
	MultiplePodTemplates bool
	// WorkloadAffinity groups bindings by labels of their templates.
	WorkloadAffinity bool
	// PriorityScheduling sets the priority of bindings to the value of the PriorityClass that the
	// policy names.
	PriorityScheduling bool
	// ResourceQuotaEstimate records the namespace in which a replica needs its resources.
	ResourceQuotaEstimate bool
}

// TemplateReader reads objects of any kind. It returns nil for a missing object.
type TemplateReader interface {
	GetCached(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error)
}

// Binder reads and writes the bindings of templates.
type Binder struct {
	// Karmada reads bindings from a cache and writes to the API server.
	Karmada client.Client
	// Templates reads PriorityClasses.
	Templates TemplateReader
	// Rules interpret templates.
	Rules    interpreter.Source
	Events   *loop.Events
	Features Features
	// Now returns the time for conditions.
	Now func() time.Time
}

// Find returns the binding of the template, or nil if the template has none. Like binding.Find, it
// may return the binding of another template.
func (b *Binder) Find(ctx context.Context, r templates.Ref) (binding.Object, error) {
	found, _, err := lookup.BindingOfTemplate(ctx, b.Karmada, r.Kind.GroupKind(), r.Key)
	return found, err
}

// Bind creates or updates the binding of the claimed template. bound is the result of Find. If it
// is nil, Bind creates the binding. Bind reports whether it wrote anything.
func (b *Binder) Bind(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, p policy.Object, userState string) (changed bool, err error) {
	if bound == nil && template.GetDeletionTimestamp() != nil {
		// A template that is being deleted gets no binding, because its foreground deletion would
		// wait until the binding is deleted.
		return false, nil
	}
	if bound != nil {
		// Checked before the interpretation, whose result would be reported on the binding.
		if err := policy.CheckBindingOwner(bound, template); err != nil {
			return false, err
		}
	}
	input, err := b.input(ctx, template, p)
	if bound, err = b.reportInterpretation(ctx, bound, err); err != nil {
		return false, err
	}
	input.UserState = userState
	if bound == nil {
		return b.create(ctx, input)
	}
	desired := binding.Copy(bound)
	if err := policy.UpdateBinding(desired, input); err != nil {
		return false, err
	}
	changed, err = patch.Object(ctx, b.Karmada, bound, desired)
	return changed, loop.StaleIfNotFound(err)
}

func (b *Binder) create(ctx context.Context, input policy.BindingInput) (wrote bool, err error) {
	template := input.Template
	existing, freeName, err := lookup.BindingOfTemplate(ctx, b.Karmada, template.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(template))
	if err != nil {
		return false, err
	}
	if existing != nil {
		return false, loop.ErrStale
	}
	created := binding.New(template.GetNamespace() != "")
	created.SetName(freeName)
	if err := policy.UpdateBinding(created, input); err != nil {
		return false, err
	}
	labels := maps.Clone(created.GetLabels())
	labels[binding.PermanentIDLabel(created)] = uuid.NewString()
	created.SetLabels(labels)
	err = b.Karmada.Create(ctx, created)
	if err == nil || loop.IsNamespaceTerminating(err) {
		return err == nil, nil
	}
	return false, loop.StaleIfNotFound(fmt.Errorf("creating binding %s/%s: %w", created.GetNamespace(), created.GetName(), err))
}

// RecordUserState stores the user's state (policy.UserHash) of a template whose binding is not
// changed before the user next changes the template, because the policy is Lazy. It stores the
// state on the binding if there is one. Otherwise it returns the state, and the caller stores it on
// the template.
func (b *Binder) RecordUserState(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, state string) (string, error) {
	if bound == nil {
		return state, nil
	}
	if bound.GetAnnotations()[policyv1alpha1.UserStateAnnotation] != "" || !metav1.IsControlledBy(bound, template) {
		return "", nil
	}
	recorded := binding.Copy(bound)
	policy.SetUserState(recorded, state)
	_, err := patch.Object(ctx, b.Karmada, bound, recorded)
	return "", loop.StaleIfNotFound(err)
}
