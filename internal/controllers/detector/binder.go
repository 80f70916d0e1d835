package detector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// bindingFeatures enable the optional parts of a binding.
type bindingFeatures struct {
	// multiplePodTemplates stores the components of a template, which the interpreter returns, in
	// place of the replicas.
	multiplePodTemplates bool
	// workloadAffinity groups bindings by labels of their templates.
	workloadAffinity bool
	// priorityScheduling sets the priority of bindings to the value of the PriorityClass that the
	// policy names.
	priorityScheduling bool
	// resourceQuotaEstimate records the namespace in which a replica needs its resources.
	resourceQuotaEstimate bool
}

// binder creates and updates the bindings of claimed templates, and removes claims from bindings.
// Invariants:
//
//   - A new binding is created completely in one request.
//   - A binding without a difference is not written.
//   - The binding of another template is not changed, and no binding is deleted.
type binder struct {
	// karmada reads bindings from a cache and writes to the API server.
	karmada client.Client
	// templates reads PriorityClasses.
	templates templateReader
	// Rules interpret templates.
	Rules    interpreter.Source
	events   *loop.Events
	features bindingFeatures
	// placer selects the clusters of new bindings.
	placer *loop.BindingPlacer
	// now returns the time for conditions.
	now func() time.Time
}

// findBinding returns the binding of the template, or nil if the template has none. Like
// binding.Find, it may return the binding of another template.
func (b *binder) findBinding(ctx context.Context, r templateRef) (binding.Object, error) {
	found, _, err := loop.FindTemplateBinding(ctx, b.karmada, r.Kind.GroupKind(), r.Key)
	return found, err
}

// bind creates or updates the binding of the claimed template. bound is the result of find. If it
// is nil, bind creates the binding. It reports whether it wrote anything.
func (b *binder) bind(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, p policy.Object,
	userState string) (changed bool, err error) {
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
	changed, err = patch.Object(ctx, b.karmada, bound, desired)
	if quota.IsExceeded(err) {
		err = errors.Join(err, b.lowerReplicas(ctx, bound, desired.BindingSpec().Replicas))
	}
	return changed, loop.StaleIfNotFound(err)
}

// lowerReplicas writes only the replicas of a binding if they are fewer than before. A quota multiplies the
// new request by the scheduled replicas, so a template that has a larger request and fewer replicas may fit
// only after the scheduler has removed replicas.
func (b *binder) lowerReplicas(ctx context.Context, bound binding.Object, replicas int32) error {
	if replicas >= bound.BindingSpec().Replicas {
		return nil
	}
	lowered := binding.Copy(bound)
	lowered.BindingSpec().Replicas = replicas
	_, err := patch.Object(ctx, b.karmada, bound, lowered)
	return err
}

func (b *binder) create(ctx context.Context, input policy.BindingInput) (wrote bool, err error) {
	template := input.Template
	existing, freeName, err := loop.FindTemplateBinding(ctx, b.karmada, template.GroupVersionKind().GroupKind(),
		client.ObjectKeyFromObject(template))
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
	b.placer.Place(ctx, created)
	err = b.karmada.Create(ctx, created)
	if isPlaced := len(created.BindingSpec().Clusters) > 0; isPlaced && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) {
		// The admission may reject the clusters. The scheduler reports this on a binding without clusters.
		binding.RemovePlacement(created)
		err = b.karmada.Create(ctx, created)
	}
	if err == nil || loop.IsNamespaceTerminating(err) {
		return err == nil, nil
	}
	return false, loop.StaleIfNotFound(fmt.Errorf("creating binding %s/%s: %w", created.GetNamespace(), created.GetName(), err))
}

// recordUserState stores the user's state (policy.UserHash) of a template whose binding is not
// changed before the user next changes the template, because the policy is Lazy. It stores the
// state on the binding if there is one. Otherwise it returns the state, and the caller stores it on
// the template.
func (b *binder) recordUserState(ctx context.Context, template *unstructured.Unstructured, bound binding.Object,
	state string) (string, error) {
	if bound == nil {
		return state, nil
	}
	if bound.GetAnnotations()[policyv1alpha1.UserStateAnnotation] != "" || !metav1.IsControlledBy(bound, template) {
		return "", nil
	}
	recorded := binding.Copy(bound)
	policy.SetUserState(recorded, state)
	_, err := patch.Object(ctx, b.karmada, bound, recorded)
	return "", loop.StaleIfNotFound(err)
}

// priorityClassKind is the kind of PriorityClasses. PriorityClasses are read as unstructured
// objects, because they are templates too and can then share the watch of templates.
var priorityClassKind = schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"}

// input returns the input from which a binding is made.
func (b *binder) input(ctx context.Context, template *unstructured.Unstructured, p policy.Object) (policy.BindingInput, error) {
	input := policy.BindingInput{Template: template, Policy: p, WorkloadAffinity: b.features.workloadAffinity}
	if err := b.interpretTemplate(ctx, &input); err != nil {
		return input, err
	}
	if template.GetNamespace() == "" {
		return input, nil
	}
	priority, err := b.schedulePriority(ctx, p)
	input.SchedulePriority = priority
	return input, err
}

// interpretTemplate sets what the interpreter says about the template, and records events about it.
func (b *binder) interpretTemplate(ctx context.Context, input *policy.BindingInput) error {
	template := input.Template
	operation, err := input.Interpret(ctx, b.Rules.Rules(template.GroupVersionKind()), b.features.multiplePodTemplates)
	switch operation {
	case configv1alpha1.InterpreterOperationInterpretComponent:
		return b.recordInterpretation(template, workv1alpha2.EventReasonGetComponentsFailed, "components", err)
	case configv1alpha1.InterpreterOperationInterpretReplica:
		if b.features.resourceQuotaEstimate && input.Requirements != nil && input.Requirements.Namespace == "" {
			input.Requirements = input.Requirements.DeepCopy()
			input.Requirements.Namespace = template.GetNamespace()
		}
		if err == nil {
			b.events.RecordSuccess(template, workv1alpha2.EventReasonGetReplicasSucceed, "The template has %d replicas", input.Replicas)
		}
		return b.recordInterpretation(template, workv1alpha2.EventReasonGetReplicasFailed, "replicas", err)
	default:
		return nil
	}
}

func (b *binder) recordInterpretation(template *unstructured.Unstructured, reason, what string, err error) error {
	if err == nil {
		b.events.ClearFailure(template, reason)
		return nil
	}
	err = fmt.Errorf("interpreting %s of %s %s: %w", what, template.GetKind(), client.ObjectKeyFromObject(template), err)
	b.events.RecordFailure(template, reason, err)
	return &interpretationError{err}
}

// interpretationError is an error that an interpreter rule returned.
type interpretationError struct{ error }

func (i *interpretationError) Unwrap() error { return i.error }

// reportInterpretation reports the result of the interpretation on the binding, if there is one. It
// returns the current binding, and the error of interpreters.Report.
func (b *binder) reportInterpretation(ctx context.Context, bound binding.Object, err error) (binding.Object, error) {
	if bound == nil || err != nil && !errors.As(err, new(*interpretationError)) {
		return bound, err
	}
	return interpreters.Report(ctx, b.karmada, bound, workv1alpha2.TemplateInterpreted, err, b.now())
}

// schedulePriority returns the value of the PriorityClass that the policy names, or nil if the
// policy names none.
func (b *binder) schedulePriority(ctx context.Context, p policy.Object) (*int32, error) {
	priority := p.PropagationSpec().SchedulePriority
	if !b.features.priorityScheduling || priority == nil {
		return nil, nil
	}
	if priority.PriorityClassSource != policyv1alpha1.KubePriorityClass {
		return nil, fmt.Errorf("priority class source %q is not supported yet", priority.PriorityClassSource)
	}
	class, err := b.templates.GetCached(ctx, priorityClassKind, types.NamespacedName{Name: priority.PriorityClassName})
	if err != nil {
		return nil, err
	}
	if class == nil {
		return nil, fmt.Errorf("priority class %q does not exist", priority.PriorityClassName)
	}
	return new(policy.PriorityClassValue(class)), nil
}

// templatesOf returns the templates of the bindings with a claim. The client karmada must have the
// index loop.BindingsByPolicy.
func (b *binder) templatesOf(ctx context.Context, claim policy.Claim) ([]templateRef, error) {
	claimed, err := b.claimedBindings(ctx, claim)
	found := make([]templateRef, len(claimed))
	for i, bound := range claimed {
		found[i] = refFromBinding(&bound.BindingSpec().Resource)
	}
	return found, err
}

// suspendDeleted copies the suspension of a policy to the bindings that the policy claims and that
// are being deleted, so that a user can resume their deletion in the policy. Other bindings get the
// suspension when their templates are reconciled.
func (b *binder) suspendDeleted(ctx context.Context, p policy.Object) error {
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
		_, err := patch.Object(ctx, b.karmada, bound, desired)
		failures = append(failures, client.IgnoreNotFound(err))
	}
	return errors.Join(failures...)
}

// claimedBindings returns the bindings with a claim. They are shared with the cache and must not be
// changed.
func (b *binder) claimedBindings(ctx context.Context, claim policy.Claim) ([]binding.Object, error) {
	if claim.ID == "" {
		return nil, nil
	}
	options := []client.ListOption{loop.BindingsByPolicy.Matching(claim.ID), client.UnsafeDisableDeepCopy}
	scopes := []bool{true, false}
	if !claim.IsCluster() {
		options, scopes = append(options, client.InNamespace(claim.Namespace)), scopes[:1]
	}
	var found []binding.Object
	for _, namespaced := range scopes {
		claimed, err := loop.ListBindings(ctx, b.karmada, namespaced, options...)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", claim, err)
		}
		found = append(found, claimed...)
	}
	return found, nil
}

// unclaimTemplate removes a claim from the binding of the template and returns the binding, or nil
// if the template has no binding. It does not change the binding of another template.
func (b *binder) unclaimTemplate(ctx context.Context, claim policy.Claim, r templateRef) (binding.Object, error) {
	bound, err := b.findBinding(ctx, r)
	if err != nil || bound == nil || !binding.IsOf(bound, r.Kind.GroupKind(), r.Key.Name) {
		return nil, err
	}
	return bound, b.unclaim(ctx, claim, bound)
}

// unclaimLeftover removes a claim from the binding of a template that has no claim itself. The
// binding has such a claim if one reconcile created the binding while another reconcile released
// the template.
func (b *binder) unclaimLeftover(ctx context.Context, template *unstructured.Unstructured, bound binding.Object) error {
	if bound == nil || !metav1.IsControlledBy(bound, template) {
		return nil
	}
	claim, claimed := policy.ClaimedBy(bound)
	if !claimed {
		return nil
	}
	return b.unclaim(ctx, claim, bound)
}

func (b *binder) unclaim(ctx context.Context, claim policy.Claim, bound binding.Object) error {
	released := binding.Copy(bound)
	if !claim.Remove(released) {
		return nil
	}
	_, err := patch.Object(ctx, b.karmada, bound, released)
	return client.IgnoreNotFound(err)
}
