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

// awaitOverrides returns an error when overrides are missing that the policy
// depends on. The request is queued again when one appears, or when the policy
// changes.
func (d *detector) awaitOverrides(ctx context.Context, asked request, template *unstructured.Unstructured, p policy.Object) error {
	if len(p.PropagationSpec().DependentOverrides) == 0 {
		return nil
	}
	missing := d.missingOverrides(ctx, p)
	if missing == nil {
		return nil
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		d.waiting.add(asked.reference, template.GetLabels())
	}
	for _, override := range policy.DependentOverrides(p) {
		d.overrides.add(override, asked)
	}
	// One that appeared meanwhile woke nobody.
	return d.missingOverrides(ctx, p)
}

// awaitHolder returns an error when the binding that a template needs belongs to
// another one. Nothing is written then, not even a claim. The request is queued
// again when that binding goes.
func (d *detector) awaitHolder(ctx context.Context, asked request, template *unstructured.Unstructured, bound binding.Object) error {
	if bound == nil {
		return nil
	}
	err := policy.CheckHolder(bound, template)
	var collision *policy.CollisionError
	if !errors.As(err, &collision) {
		return nil // the binding of an earlier template of the name is met later
	}
	if _, claimed := policy.ClaimedBy(template); !claimed {
		d.waiting.add(asked.reference, template.GetLabels())
	}
	d.holders.add(client.ObjectKeyFromObject(bound), asked)
	// One that went meanwhile woke nobody.
	again, readErr := d.bindingOf(ctx, asked.reference)
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

// metadataOf keeps a missing binding from becoming an interface that is not nil.
func metadataOf(bound binding.Object) metav1.Object {
	if bound == nil {
		return nil
	}
	return bound
}

// claim marks the template as the policy's and returns it as it is stored then;
// nil when it is gone. state is recorded along with the claim.
func (d *detector) claim(ctx context.Context, r reference, template *unstructured.Unstructured, p policy.Object, state string) (*unstructured.Unstructured, error) {
	claimed := template.DeepCopy()
	policy.ClaimOf(p).Apply(claimed)
	recordState(claimed, state)
	if policy.RelevantChange(template, claimed) {
		d.echoes.expect(r, claimed, p)
	}
	_, err := patch.Object(ctx, d.karmada, template, claimed)
	if err != nil {
		d.echoes.forget(r)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// postpone remembers the user's state of a template whose Lazy policy has to
// wait for the next one: on the binding, if there is one, else it returns what
// to record on the template.
func (d *detector) postpone(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, state string) (string, error) {
	if bound == nil {
		return state, nil
	}
	if bound.GetAnnotations()[policy.UserStateAnnotation] != "" || !metav1.IsControlledBy(bound, template) {
		return "", nil
	}
	noted := binding.Copy(bound)
	recordState(noted, state)
	_, err := patch.Object(ctx, d.karmada, bound, noted)
	return "", gone(err)
}

// recordState notes the user's state on an object; empty removes the note.
func recordState(object metav1.Object, state string) {
	annotations := object.GetAnnotations()
	if annotations[policy.UserStateAnnotation] == state {
		return
	}
	kept := make(map[string]string, len(annotations)+1)
	maps.Copy(kept, annotations)
	delete(kept, policy.UserStateAnnotation)
	if state != "" {
		kept[policy.UserStateAnnotation] = state
	}
	if len(kept) == 0 {
		kept = nil
	}
	object.SetAnnotations(kept)
}

// bind brings the binding in line with the claimed template, and creates it if
// there is none, whole and at once. It reports whether it wrote anything.
func (d *detector) bind(ctx context.Context, template *unstructured.Unstructured, bound binding.Object, p policy.Object, userState string) (changed bool, err error) {
	if bound == nil && template.GetDeletionTimestamp() != nil {
		// Whoever deletes a template in the foreground waits for its binding to go.
		return false, nil
	}
	in, err := d.wanted(ctx, template, p)
	if err != nil {
		return false, err
	}
	in.UserState = userState
	if bound == nil {
		return d.createBinding(ctx, in)
	}
	desired := binding.Copy(bound)
	if err := policy.Bind(desired, in); err != nil {
		return false, err
	}
	changed, err = patch.Object(ctx, d.karmada, bound, desired)
	return changed, gone(err)
}

func (d *detector) createBinding(ctx context.Context, in policy.BindInput) (done bool, err error) {
	created := binding.New(in.Template.GetNamespace() != "")
	if err := policy.Bind(created, in); err != nil {
		return false, err
	}
	labels := maps.Clone(created.GetLabels())
	labels[binding.PermanentIDLabel(created)] = uuid.NewString()
	created.SetLabels(labels)
	err = d.karmada.Create(ctx, created)
	if err == nil || ending(err) {
		return err == nil, nil
	}
	return false, gone(fmt.Errorf("creating binding %s/%s: %w", created.GetNamespace(), created.GetName(), err))
}

// wanted gathers what a binding is made from.
func (d *detector) wanted(ctx context.Context, template *unstructured.Unstructured, p policy.Object) (policy.BindInput, error) {
	in := policy.BindInput{Template: template, Policy: p, WorkloadAffinity: d.options.WorkloadAffinity}
	if err := d.interpret(ctx, &in); err != nil {
		return in, err
	}
	if template.GetNamespace() == "" {
		return in, nil
	}
	priority, err := d.schedulePriority(ctx, p)
	in.SchedulePriority = priority
	return in, err
}

// interpret asks what pods the template makes.
func (d *detector) interpret(ctx context.Context, in *policy.BindInput) (err error) {
	template := in.Template
	rules := d.rules.Rules(template.GroupVersionKind())
	if d.options.MultiplePodTemplates && rules.Components != nil {
		in.Components, err = rules.Components(ctx, template)
		return d.interpreted(template, workv1alpha2.EventReasonGetComponentsFailed, "components", err)
	}
	if rules.Replicas == nil {
		return nil
	}
	in.Replicas, in.Requirements, err = rules.Replicas(ctx, template)
	if d.options.ResourceQuotaEstimate && in.Requirements != nil && in.Requirements.Namespace == "" {
		in.Requirements = in.Requirements.DeepCopy()
		in.Requirements.Namespace = template.GetNamespace()
	}
	if err == nil {
		d.events.Succeeded(template, workv1alpha2.EventReasonGetReplicasSucceed, "The template has %d replicas", in.Replicas)
	}
	return d.interpreted(template, workv1alpha2.EventReasonGetReplicasFailed, "replicas", err)
}

func (d *detector) interpreted(template *unstructured.Unstructured, reason, what string, err error) error {
	if err == nil {
		d.events.Recovered(template, reason)
		return nil
	}
	err = fmt.Errorf("interpreting %s of %s %s: %w", what, template.GetKind(), client.ObjectKeyFromObject(template), err)
	d.events.Failed(template, reason, err)
	return err
}
