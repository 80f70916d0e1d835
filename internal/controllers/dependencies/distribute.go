package dependencies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/reach"
)

// distribute lets everything that a dependent needs follow it.
func (r *reconciler) distribute(ctx context.Context, dependent *workv1alpha2.ResourceBinding) error {
	template, err := r.template(ctx, dependent.Spec.Resource)
	if err != nil || template == nil {
		// The binding of a template that is gone is collected.
		return err
	}
	rule := r.rules.Rules(template.GroupVersionKind()).Dependencies
	if rule == nil {
		return nil
	}
	found, err := rule(ctx, template)
	if err != nil {
		err = fmt.Errorf("interpreting what %s %s needs: %w", template.GetKind(), client.ObjectKeyFromObject(template), err)
		r.events.Failed(template, workv1alpha2.EventReasonGetDependenciesFailed, err)
		return err
	}
	r.events.Recovered(template, workv1alpha2.EventReasonGetDependenciesFailed)
	references := dependency.References(template, found)
	if len(references) == 0 {
		r.events.Succeeded(template, workv1alpha2.EventReasonGetDependenciesSucceed, "Found no dependencies")
		return r.withdraw(ctx, dependent)
	}
	if len(dependent.Spec.Clusters) == 0 && !marked(dependent) {
		return nil // there is nowhere to follow to yet
	}
	if r.needs.put(client.ObjectKeyFromObject(dependent), references) {
		r.watches.hurry()
	}
	if err := r.record(ctx, dependent, template, references); err != nil {
		return err
	}
	r.events.Succeeded(template, workv1alpha2.EventReasonGetDependenciesSucceed, "Found %d dependencies", len(references))
	return r.attachAll(ctx, dependent, references)
}

// record notes on the dependent what it needs, and holds it until that is
// released.
func (r *reconciler) record(ctx context.Context, dependent *workv1alpha2.ResourceBinding, template *unstructured.Unstructured, references []dependency.Reference) error {
	recorded := dependent.DeepCopy()
	controllerutil.AddFinalizer(recorded, workv1alpha2.BindingDependenciesDistributorFinalizer)
	if err := dependency.Record(recorded, references); err != nil {
		return err
	}
	changed, err := patch.Object(ctx, r.karmada, dependent, recorded)
	if err != nil {
		return gone(err)
	}
	if changed {
		r.events.Decided(template, workv1alpha2.EventReasonGetDependenciesSucceed, "Found %d dependencies", len(references))
	}
	return nil
}

// attachAll releases what is needed no longer and lets the rest follow. One that
// fails does not stop the others.
func (r *reconciler) attachAll(ctx context.Context, dependent *workv1alpha2.ResourceBinding, references []dependency.Reference) error {
	var failures []error
	written := false
	released, err := r.releaseUnneeded(ctx, dependent, references)
	if err != nil {
		failures = append(failures, err)
	}
	within, refused := dependency.Within(binding.PartyOf(dependent), references)
	for _, refusal := range refused {
		failures = append(failures, refusal)
	}
	for _, reference := range within {
		objects, err := r.objects(ctx, reference)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, object := range objects {
			if refusal := r.propagated.Refuses(object.GroupVersionKind(), client.ObjectKeyFromObject(object)); refusal != nil {
				failures = append(failures, refusal)
				continue
			}
			if refusal := reach.Marked(object); refusal != nil {
				failures = append(failures, refusal)
				continue
			}
			wrote, err := r.attach(ctx, dependent, object)
			if err != nil {
				failures = append(failures, err)
			}
			written = written || wrote
		}
	}
	if len(failures) == 0 && (written || released) {
		r.events.Decided(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesSucceed, "The dependencies follow the object to its clusters")
	}
	if len(failures) == 0 {
		r.events.Succeeded(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesSucceed, "The dependencies follow the object to its clusters")
	}
	return errors.Join(failures...)
}

// releaseUnneeded releases those attached bindings to which no reference leads.
func (r *reconciler) releaseUnneeded(ctx context.Context, dependent *workv1alpha2.ResourceBinding, references []dependency.Reference) (released bool, err error) {
	attached, err := r.attachedTo(ctx, client.ObjectKeyFromObject(dependent))
	if err != nil {
		return false, err
	}
	var failures []error
	for _, each := range attached {
		needed, err := r.needed(ctx, references, each)
		if err == nil && !needed {
			released = true
			err = r.release(ctx, client.ObjectKeyFromObject(dependent), each)
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return released, errors.Join(failures...)
}

// needed reports whether any reference leads to the object of an attached
// binding. Labels are asked of the object itself: as it is stored before they are
// said to lead nowhere, for what is let go is taken out of the members. The binding
// of an object that is gone goes with it, and so is kept here: that nothing is
// found may as well mean that its kind is not served for a moment.
func (r *reconciler) needed(ctx context.Context, references []dependency.Reference, attached binding.Object) (bool, error) {
	resource := attached.BindingSpec().Resource
	thing := dependency.ThingOf(resource)
	if !standsWhere(attached, thing) {
		return false, nil
	}
	if slices.ContainsFunc(references, func(ref dependency.Reference) bool {
		return ref.Name != "" && dependency.Matches(ref, thing, nil)
	}) {
		return true, nil
	}
	for _, ref := range references {
		if ref.Name != "" || !dependency.Near(ref, thing) {
			continue
		}
		selected, err := r.selected(ctx, ref, thing)
		if err != nil || selected {
			return selected, err
		}
	}
	return false, nil
}

func (r *reconciler) selected(ctx context.Context, ref dependency.Reference, thing dependency.Thing) (bool, error) {
	object, err := r.templates.Seen(ctx, dependency.KindOf(ref), thing.Key)
	if err == nil && object != nil && dependency.Matches(ref, thing, object.GetLabels()) {
		return true, nil
	}
	if err == nil {
		object, err = r.templates.Live(ctx, dependency.KindOf(ref), thing.Key)
	}
	return err == nil && (object == nil || dependency.Matches(ref, thing, object.GetLabels())), err
}

// standsWhere reports whether a binding is the one that its object has, and not
// one that somebody made for the object elsewhere.
func standsWhere(attached binding.Object, thing dependency.Thing) bool {
	return attached.GetNamespace() == thing.Key.Namespace && attached.GetName() == binding.Name(thing.Key.Name, thing.Kind.Kind)
}

// marked reports whether a dependent may have something attached to it.
func marked(dependent *workv1alpha2.ResourceBinding) bool {
	return controllerutil.ContainsFinalizer(dependent, workv1alpha2.BindingDependenciesDistributorFinalizer)
}
