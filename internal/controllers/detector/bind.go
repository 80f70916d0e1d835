package detector

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
)

// awaitOverrides returns an error when override policies are missing that the propagation
// policy depends on. The request is queued again when one is created, or when the propagation
// policy changes.
func (d *detector) awaitOverrides(ctx context.Context, r templateRequest, template *unstructured.Unstructured, p policy.Object) error {
	if len(p.PropagationSpec().DependentOverrides) == 0 {
		return nil
	}
	missing := d.missingOverrides(ctx, p)
	if missing == nil {
		return nil
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		d.waitingTemplates.add(r.templateRef, template.GetLabels())
	}
	for _, override := range policy.DependentOverrides(p) {
		d.waitingForOverride.add(override, r)
	}
	// An override policy that was created meanwhile has queued nothing.
	return d.missingOverrides(ctx, p)
}

// awaitBindingOwner returns an error when another template owns the binding of the name that
// this template needs. Nothing is written then, not even a claim. The request is queued again
// when that binding is deleted.
func (d *detector) awaitBindingOwner(ctx context.Context, r templateRequest, template *unstructured.Unstructured, owned binding.Object) error {
	if owned == nil {
		return nil
	}
	err := policy.CheckBindingOwner(owned, template)
	var collision *policy.CollisionError
	if !errors.As(err, &collision) {
		return nil // a binding of an earlier template of the same name is handled later
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		d.waitingTemplates.add(r.templateRef, template.GetLabels())
	}
	d.waitingForBinding.add(client.ObjectKeyFromObject(owned), r)
	// A binding that was deleted meanwhile has queued nothing.
	again, readErr := d.bindingOf(ctx, r.templateRef)
	if readErr != nil {
		return readErr
	}
	if again == nil {
		return errStale
	}
	return err
}

func (d *detector) missingOverrides(ctx context.Context, p policy.Object) error {
	var failure error
	err := policy.CheckDependentOverrides(p, func(name types.NamespacedName) bool {
		var found client.Object = &policyv1alpha1.OverridePolicy{}
		if policy.IsCluster(p) {
			found = &policyv1alpha1.ClusterOverridePolicy{}
		}
		err := d.karmada.Get(ctx, name, found)
		if client.IgnoreNotFound(err) != nil {
			failure = fmt.Errorf("reading override policy %s: %w", name, err)
		}
		return err == nil
	})
	if failure != nil {
		return failure
	}
	return err
}

// metadataOf returns nil for a missing binding, and not an interface that holds a nil pointer.
func metadataOf(bound binding.Object) metav1.Object {
	if bound == nil {
		return nil
	}
	return bound
}

// claim adds the claim of the policy and the user's state to the template. It returns the
// template as it is stored then, or nil when the template does not exist any more.
func (d *detector) claim(ctx context.Context, r templateRef, template *unstructured.Unstructured, p policy.Object, state string) (*unstructured.Unstructured, error) {
	claimed := template.DeepCopy()
	policy.ClaimOf(p).Apply(claimed)
	setUserState(claimed, state)
	if policy.HasRelevantChange(template, claimed) {
		d.claimWrites.expect(r, claimed, p)
	}
	_, err := patch.Object(ctx, d.karmada, template, claimed)
	if err != nil {
		d.claimWrites.delete(r)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// recordDeferredState stores the user's state of a template whose Lazy policy waits for the
// next change. The state is stored on the binding if there is one. Otherwise it is returned,
// and the caller records it on the template.
func (d *detector) recordDeferredState(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, state string) (string, error) {
	if bound == nil {
		return state, nil
	}
	if bound.GetAnnotations()[policy.UserStateAnnotation] != "" || !metav1.IsControlledBy(bound, template) {
		return "", nil
	}
	recorded := binding.Copy(bound)
	setUserState(recorded, state)
	_, err := patch.Object(ctx, d.karmada, bound, recorded)
	return "", notFoundAsStale(err)
}

// setUserState records the user's state on an object. An empty state removes the annotation.
func setUserState(object metav1.Object, state string) {
	annotations := object.GetAnnotations()
	if annotations[policy.UserStateAnnotation] == state {
		return
	}
	remaining := make(map[string]string, len(annotations)+1)
	maps.Copy(remaining, annotations)
	delete(remaining, policy.UserStateAnnotation)
	if state != "" {
		remaining[policy.UserStateAnnotation] = state
	}
	if len(remaining) == 0 {
		remaining = nil
	}
	object.SetAnnotations(remaining)
}

// bind updates the binding to match the claimed template. A missing binding is created
// complete, in one request. bind reports whether it wrote anything.
func (d *detector) bind(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, p policy.Object, userState string) (changed bool, err error) {
	if bound == nil && template.GetDeletionTimestamp() != nil {
		// The foreground deletion of a template waits until its binding is deleted.
		return false, nil
	}
	input, err := d.bindInput(ctx, template, p)
	if err != nil {
		return false, err
	}
	input.UserState = userState
	if bound == nil {
		return d.createBinding(ctx, input)
	}
	desired := binding.Copy(bound)
	if err := policy.UpdateBinding(desired, input); err != nil {
		return false, err
	}
	changed, err = patch.Object(ctx, d.karmada, bound, desired)
	return changed, notFoundAsStale(err)
}

func (d *detector) createBinding(ctx context.Context, input policy.BindingInput) (wrote bool, err error) {
	created := binding.New(input.Template.GetNamespace() != "")
	if err := policy.UpdateBinding(created, input); err != nil {
		return false, err
	}
	labels := maps.Clone(created.GetLabels())
	labels[binding.PermanentIDLabel(created)] = uuid.NewString()
	created.SetLabels(labels)
	err = d.karmada.Create(ctx, created)
	if err == nil || isNamespaceTerminating(err) {
		return err == nil, nil
	}
	return false, notFoundAsStale(fmt.Errorf("creating binding %s/%s: %w", created.GetNamespace(), created.GetName(), err))
}

// bindInput returns the input from which a binding is made.
func (d *detector) bindInput(ctx context.Context, template *unstructured.Unstructured, p policy.Object) (policy.BindingInput, error) {
	input := policy.BindingInput{Template: template, Policy: p, WorkloadAffinity: d.options.WorkloadAffinity}
	if err := d.interpretTemplate(ctx, &input); err != nil {
		return input, err
	}
	if template.GetNamespace() == "" {
		return input, nil
	}
	priority, err := d.schedulePriority(ctx, p)
	input.SchedulePriority = priority
	return input, err
}

// interpretTemplate sets the components, or the replicas and requirements, of the template's
// pods.
func (d *detector) interpretTemplate(ctx context.Context, input *policy.BindingInput) (err error) {
	template := input.Template
	rules := d.rules.Rules(template.GroupVersionKind())
	if d.options.MultiplePodTemplates && rules.Components != nil {
		input.Components, err = rules.Components(ctx, template)
		return d.recordInterpretationEvent(template, workv1alpha2.EventReasonGetComponentsFailed, "components", err)
	}
	if rules.Replicas == nil {
		return nil
	}
	input.Replicas, input.Requirements, err = rules.Replicas(ctx, template)
	if d.options.ResourceQuotaEstimate && input.Requirements != nil && input.Requirements.Namespace == "" {
		input.Requirements = input.Requirements.DeepCopy()
		input.Requirements.Namespace = template.GetNamespace()
	}
	if err == nil {
		d.events.RecordSuccess(template, workv1alpha2.EventReasonGetReplicasSucceed, "The template has %d replicas", input.Replicas)
	}
	return d.recordInterpretationEvent(template, workv1alpha2.EventReasonGetReplicasFailed, "replicas", err)
}

func (d *detector) recordInterpretationEvent(template *unstructured.Unstructured, reason, what string, err error) error {
	if err == nil {
		d.events.ClearFailure(template, reason)
		return nil
	}
	err = fmt.Errorf("interpreting %s of %s %s: %w", what, template.GetKind(), client.ObjectKeyFromObject(template), err)
	d.events.RecordFailure(template, reason, err)
	return err
}
