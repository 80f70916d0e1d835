package bindingstatus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/reach"
)

// templateTries is how often a status is computed anew when others write the
// template at the same time.
const templateTries = 5

// sum is what the status of one template is made of.
type sum struct {
	request  reconcile.Request
	template workv1alpha2.ObjectReference
	items    []workv1alpha2.AggregatedStatusItem
	// live tells that the cache is known to be behind.
	live bool
}

// sumUp writes the sum of all clusters into the status of the template. Kinds
// that nobody can sum up, and those that have no status, are left alone.
func (r *reconciler) sumUp(ctx context.Context, request reconcile.Request, of binding.Object, items []workv1alpha2.AggregatedStatusItem) error {
	reference := of.BindingSpec().Resource
	kind := kindOf(reference)
	// A binding that was made by hand may be for an object that is not its own.
	if !reach.IsBound(of.GetNamespace(), reference) || r.rules.Rules(kind).Aggregate == nil || r.without.has(kind, r.now()) {
		return nil
	}
	s := sum{request: request, template: reference, items: awaited(items, binding.Targets(of.BindingSpec()))}
	var err error
	for range templateTries {
		if err = r.try(ctx, s); !apierrors.IsConflict(err) {
			break
		}
		s.live = true
	}
	return err
}

// try computes and writes the status once.
func (r *reconciler) try(ctx context.Context, s sum) error {
	template, err := r.template(ctx, s)
	if err != nil || template == nil || !isFor(template, s.template) {
		return err
	}
	err = r.advance(ctx, s, template)
	switch {
	case err == nil:
		r.events.Recovered(template, workv1alpha2.EventReasonAggregateStatusFailed)
		r.events.Succeeded(template, workv1alpha2.EventReasonAggregateStatusSucceed, "Aggregated the status of %d clusters", len(s.items))
	case !apierrors.IsConflict(err):
		err = fmt.Errorf("aggregating status of %s %q: %w", template.GetKind(), keyOf(s.template), err)
		r.events.Failed(template, workv1alpha2.EventReasonAggregateStatusFailed, err)
	}
	return err
}

// statusSteps is how many writes a status may take; see interpreter.Rules.
const statusSteps = 2

// advance writes the status that a template should have now.
func (r *reconciler) advance(ctx context.Context, s sum, template *unstructured.Unstructured) error {
	for range statusSteps {
		summed, err := r.rules.Rules(kindOf(s.template)).Aggregate(ctx, template, s.items)
		if err != nil {
			return err
		}
		stored, err := r.writeTemplate(ctx, s.request, template, summed)
		if err != nil || stored == nil {
			return err
		}
		template = stored
	}
	return nil
}

// awaited adds an item that tells nothing for each target whose Work does not
// exist yet, in the order of names. Without it a template would look complete
// in the moment between its scheduling and its delivery: observedGeneration
// would move although a cluster does not have the template at all.
func awaited(items []workv1alpha2.AggregatedStatusItem, targets []workv1alpha2.TargetCluster) []workv1alpha2.AggregatedStatusItem {
	all := slices.Clone(items)
	for _, target := range targets {
		at, found := slices.BinarySearchFunc(all, target.Name, func(item workv1alpha2.AggregatedStatusItem, name string) int {
			return cmp.Compare(item.ClusterName, name)
		})
		if !found {
			all = slices.Insert(all, at, workv1alpha2.AggregatedStatusItem{ClusterName: target.Name, Health: workv1alpha2.ResourceUnknown})
		}
	}
	return all
}

// template is what is stored, nil when there is nothing. The cache does not do
// when it is behind what the binding was made from or what was last written here.
func (r *reconciler) template(ctx context.Context, s sum) (*unstructured.Unstructured, error) {
	if s.live {
		return r.templates.Live(ctx, kindOf(s.template), keyOf(s.template))
	}
	template, err := r.templates.Get(ctx, kindOf(s.template), keyOf(s.template))
	if err == nil && template != nil && r.behind(template, s) {
		return r.templates.Live(ctx, kindOf(s.template), keyOf(s.template))
	}
	return template, err
}

func (r *reconciler) behind(template *unstructured.Unstructured, s sum) bool {
	version := template.GetResourceVersion()
	return older(version, s.template.ResourceVersion) || older(version, r.written.versions(s.request).template)
}

// writeTemplate writes the status of summed, if it says anything new, and returns
// what is stored then; nil when nothing was written.
func (r *reconciler) writeTemplate(ctx context.Context, request reconcile.Request, template, summed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	change, err := statusPatch(template, summed)
	if err != nil || change == nil {
		return nil, err
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(template.GroupVersionKind())
	stored.SetNamespace(template.GetNamespace())
	stored.SetName(template.GetName())
	err = r.karmada.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, change))
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return nil, r.noteMissing(ctx, template)
	}
	if err != nil {
		return nil, fmt.Errorf("patching it: %w", err)
	}
	r.written.wroteTemplate(request, stored.GetResourceVersion())
	return stored, nil
}

// noteMissing finds out what is not there: the template, which needs nothing
// more, or the status of its kind. The API server answers alike for both.
func (r *reconciler) noteMissing(ctx context.Context, template *unstructured.Unstructured) error {
	current, err := r.templates.Live(ctx, template.GroupVersionKind(), client.ObjectKeyFromObject(template))
	if current != nil && current.GetUID() == template.GetUID() {
		r.without.note(template.GroupVersionKind(), r.now())
	}
	return err
}

// statusPatch is the merge patch that gives before the status of after, nil when
// that would change nothing. It carries the version that it was computed from:
// lists are replaced whole, and a sum is only true of the generation it was made
// for.
func statusPatch(before, after *unstructured.Unstructured) ([]byte, error) {
	if before == after {
		return nil, nil
	}
	old, err := statusOf(before)
	if err != nil {
		return nil, err
	}
	wanted, err := statusOf(after)
	if err != nil {
		return nil, err
	}
	difference, err := jsonpatch.CreateMergePatch(old, wanted)
	if err != nil {
		return nil, fmt.Errorf("comparing statuses: %w", err)
	}
	// A patch may ask for nothing but the removal of what is not there.
	result, err := jsonpatch.MergePatch(old, difference)
	if err != nil {
		return nil, fmt.Errorf("comparing statuses: %w", err)
	}
	if jsonpatch.Equal(old, result) {
		return nil, nil
	}
	version, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": before.GetResourceVersion()}})
	if err != nil {
		return nil, fmt.Errorf("encoding the version: %w", err)
	}
	return jsonpatch.MergeMergePatches(version, difference)
}

// statusOf is an object that holds nothing but the status.
func statusOf(object *unstructured.Unstructured) ([]byte, error) {
	status, found := object.Object["status"]
	if !found {
		return []byte("{}"), nil
	}
	encoded, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return encoded, nil
}

// isFor tells whether an object is the one that a binding was made for, and not
// one that took its name later.
func isFor(template *unstructured.Unstructured, reference workv1alpha2.ObjectReference) bool {
	return reference.UID == "" || template.GetUID() == reference.UID
}

func kindOf(reference workv1alpha2.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
}

func keyOf(reference workv1alpha2.ObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
}
