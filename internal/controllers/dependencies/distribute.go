package dependencies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// distribute attaches the bindings of all dependencies of a dependent to that dependent.
func (r *reconciler) distribute(ctx context.Context, dependent *workv1alpha2.ResourceBinding) error {
	template, err := r.readTemplate(ctx, dependent.Spec.Resource)
	if err != nil || template == nil {
		// Nothing is done without a template, because the garbage collector deletes the binding of
		// a deleted template.
		return err
	}
	rule := r.rules.Rules(template.GroupVersionKind()).Dependencies
	if rule == nil {
		// Without a rule the dependencies are unknown, which is no reason to detach bindings. After
		// the removal of a rule, all bindings stay attached until the dependent is deleted or no
		// longer propagates dependencies.
		_, err := r.reportInterpretation(ctx, dependent, nil)
		return err
	}
	found, err := rule(ctx, template)
	if err != nil {
		err = fmt.Errorf("interpreting dependencies of %s %s: %w", template.GetKind(), client.ObjectKeyFromObject(template), err)
		r.events.RecordFailure(template, workv1alpha2.EventReasonGetDependenciesFailed, err)
		_, err = r.reportInterpretation(ctx, dependent, err)
		return err
	}
	r.events.ClearFailure(template, workv1alpha2.EventReasonGetDependenciesFailed)
	if dependent, err = r.reportInterpretation(ctx, dependent, nil); err != nil {
		return err
	}
	references := dependency.References(template, found)
	if len(references) == 0 {
		r.events.RecordSuccess(template, workv1alpha2.EventReasonGetDependenciesSucceed, "Found no dependencies")
		return r.finalize(ctx, dependent)
	}
	if len(dependent.Spec.Clusters) == 0 && !hasFinalizer(dependent) {
		return nil // the dependent has no clusters yet
	}
	if r.referenceIndex.put(client.ObjectKeyFromObject(dependent), references) {
		r.watches.requestUpdate()
	}
	if err := r.recordDependencies(ctx, dependent, template, references); err != nil {
		return err
	}
	r.events.RecordSuccess(template, workv1alpha2.EventReasonGetDependenciesSucceed, "Found %d dependencies", len(references))
	return r.attachAll(ctx, dependent, references)
}

// reportInterpretation reports the result of the rule for dependencies in a condition of the
// dependent. A nil err also means that no rule is needed, so that a failure of the past is not
// reported forever.
func (r *reconciler) reportInterpretation(ctx context.Context, dependent *workv1alpha2.ResourceBinding,
	err error) (current *workv1alpha2.ResourceBinding, reported error) {
	return interpreters.Report(ctx, r.karmada, dependent, workv1alpha2.DependenciesInterpreted, err, time.Now())
}

// recordDependencies records the references on the dependent and adds the finalizer. The finalizer
// stays until all bindings are detached.
func (r *reconciler) recordDependencies(ctx context.Context, dependent *workv1alpha2.ResourceBinding, template *unstructured.Unstructured,
	references []dependency.Reference) error {
	recorded := dependent.DeepCopy()
	controllerutil.AddFinalizer(recorded, workv1alpha2.BindingDependenciesDistributorFinalizer)
	if err := dependency.RecordReferences(recorded, references); err != nil {
		return err
	}
	changed, err := patch.Object(ctx, r.karmada, dependent, recorded)
	if err != nil {
		return loop.StaleIfNotFound(err)
	}
	if changed {
		r.events.RecordDecision(template, workv1alpha2.EventReasonGetDependenciesSucceed, "Found %d dependencies", len(references))
	}
	return nil
}

// attachAll detaches the bindings that are no longer needed and attaches the bindings of all
// references. It continues with the other objects if one object fails.
func (r *reconciler) attachAll(ctx context.Context, dependent *workv1alpha2.ResourceBinding, references []dependency.Reference) error {
	var failures []error
	written := false
	detached, err := r.detachUnneeded(ctx, dependent, references)
	if err != nil {
		failures = append(failures, err)
	}
	allowed, rejected := dependency.FilterAllowed(binding.AuthorOf(dependent), references)
	for _, rejection := range rejected {
		failures = append(failures, rejection)
	}
	for _, reference := range allowed {
		objects, err := r.referencedObjects(ctx, reference)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, object := range objects {
			wrote, err := r.attachAllowed(ctx, dependent, object)
			if err != nil {
				failures = append(failures, err)
			}
			written = written || wrote
		}
	}
	if len(failures) == 0 && (written || detached) {
		r.events.RecordDecision(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesSucceed,
			"The dependencies follow the object to its clusters")
	}
	if len(failures) == 0 {
		r.events.RecordSuccess(dependent, workv1alpha2.EventReasonSyncScheduleResultToDependenciesSucceed,
			"The dependencies follow the object to its clusters")
	}
	return errors.Join(failures...)
}

// attachAllowed attaches the binding of one object, unless the object must not be propagated. It
// reports whether it wrote anything.
func (r *reconciler) attachAllowed(ctx context.Context, dependent *workv1alpha2.ResourceBinding,
	object *unstructured.Unstructured) (written bool, err error) {
	if rejection := r.propagated.Check(object.GroupVersionKind(), client.ObjectKeyFromObject(object)); rejection != nil {
		return false, rejection
	}
	if rejection := tenancy.CheckSystemLabel(object); rejection != nil {
		return false, rejection
	}
	return r.attach(ctx, dependent, object)
}

// detachUnneeded detaches the attached bindings that no reference needs, and reports whether it
// wrote anything. Attached bindings that are being deleted get only the suspension of the
// dependent.
func (r *reconciler) detachUnneeded(ctx context.Context, dependent *workv1alpha2.ResourceBinding,
	references []dependency.Reference) (written bool, err error) {
	attached, err := r.attachedTo(ctx, client.ObjectKeyFromObject(dependent))
	if err != nil {
		return false, err
	}
	var failures []error
	for _, each := range attached {
		var wrote bool
		needed, err := r.isNeeded(ctx, references, each)
		switch {
		case err != nil:
		case !needed:
			var outcome detachment
			outcome, err = r.detach(ctx, dependent, each)
			wrote = outcome.written
		case each.GetDeletionTimestamp() != nil:
			wrote, err = r.recordSuspension(ctx, dependent, each)
		}
		if err != nil {
			failures = append(failures, err)
		}
		written = written || wrote
	}
	return written, errors.Join(failures...)
}

// isNeeded reports whether any reference selects the object of an attached binding. Before it
// reports that a label selector does not match, it reads the labels from the API server, because
// the members delete a detached object. It returns true for the binding of a missing object: this
// binding is deleted together with its object anyway, and the API server may only be unable to
// serve the kind for a moment.
func (r *reconciler) isNeeded(ctx context.Context, references []dependency.Reference, attached binding.Object) (bool, error) {
	resource := attached.BindingSpec().Resource
	objectID := dependency.ObjectOf(resource)
	if !hasBindingName(attached, objectID) {
		return false, nil
	}
	if slices.ContainsFunc(references, func(ref dependency.Reference) bool {
		return ref.Name != "" && dependency.Matches(ref, objectID, nil)
	}) {
		return true, nil
	}
	for _, ref := range references {
		if ref.Name != "" || !dependency.MatchesKindAndNamespace(ref, objectID) {
			continue
		}
		selected, err := r.isSelected(ctx, ref, objectID)
		if err != nil || selected {
			return selected, err
		}
	}
	return false, nil
}

func (r *reconciler) isSelected(ctx context.Context, ref dependency.Reference, objectID dependency.ObjectID) (bool, error) {
	object, err := r.templateReader.GetCached(ctx, dependency.ReferencedKind(ref), objectID.Key)
	if err == nil && object != nil && dependency.Matches(ref, objectID, object.GetLabels()) {
		return true, nil
	}
	if err == nil {
		object, err = r.templateReader.GetLive(ctx, dependency.ReferencedKind(ref), objectID.Key)
	}
	return err == nil && (object == nil || dependency.Matches(ref, objectID, object.GetLabels())), err
}

// hasBindingName reports whether a binding has the namespace and a name that the binding of an
// object can have. It returns false for a binding that a user created with another name or
// namespace.
func hasBindingName(attached binding.Object, objectID dependency.ObjectID) bool {
	names := binding.Names(objectID.Kind, objectID.Key.Name)
	return attached.GetNamespace() == objectID.Key.Namespace && slices.Contains(names[:], attached.GetName())
}

// hasFinalizer reports whether a dependent has the finalizer of this controller. Only then may it
// have attached bindings.
func hasFinalizer(dependent *workv1alpha2.ResourceBinding) bool {
	return controllerutil.ContainsFinalizer(dependent, workv1alpha2.BindingDependenciesDistributorFinalizer)
}
