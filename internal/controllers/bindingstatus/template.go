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
	"karmada.io/karmada/internal/domain/tenancy"
)

// maxConflictTries is how often a status is computed again when another client writes the
// template at the same time.
const maxConflictTries = 5

// aggregation holds the input for the status of one template.
type aggregation struct {
	request  reconcile.Request
	template workv1alpha2.ObjectReference
	items    []workv1alpha2.AggregatedStatusItem
	// bypassCache is true when the cache is known to be stale.
	bypassCache bool
}

// aggregateTemplateStatus writes the aggregated status of all clusters to the status of the
// template. Kinds without an aggregation rule and kinds without a status are not written.
func (r *reconciler) aggregateTemplateStatus(ctx context.Context, request reconcile.Request, bound binding.Object, items []workv1alpha2.AggregatedStatusItem) error {
	reference := bound.BindingSpec().Resource
	kind := kindOf(reference)
	// A binding that a user created may refer to an object that it must not change.
	if !tenancy.IsAllowedReference(bound.GetNamespace(), reference) || r.rules.Rules(kind).AggregateStatus == nil || r.kindsWithoutStatus.has(kind, r.now()) {
		return nil
	}
	s := aggregation{request: request, template: reference, items: withMissingTargets(items, binding.TargetClusters(bound.BindingSpec()))}
	var err error
	for range maxConflictTries {
		if err = r.tryAggregate(ctx, s); !apierrors.IsConflict(err) {
			break
		}
		s.bypassCache = true
	}
	return err
}

// tryAggregate computes and writes the status once.
func (r *reconciler) tryAggregate(ctx context.Context, s aggregation) error {
	template, err := r.readTemplate(ctx, s)
	if err != nil || template == nil || !isTemplateOf(template, s.template) {
		return err
	}
	err = r.writeAggregated(ctx, s, template)
	switch {
	case err == nil:
		r.events.ClearFailure(template, workv1alpha2.EventReasonAggregateStatusFailed)
		r.events.RecordSuccess(template, workv1alpha2.EventReasonAggregateStatusSucceed, "Aggregated the status of %d clusters", len(s.items))
	case !apierrors.IsConflict(err):
		err = fmt.Errorf("aggregating status of %s %q: %w", template.GetKind(), keyOf(s.template), err)
		r.events.RecordFailure(template, workv1alpha2.EventReasonAggregateStatusFailed, err)
	}
	return err
}

// maxStatusWrites is how many writes a status may take; see interpreter.Rules.
const maxStatusWrites = 2

// writeAggregated computes and writes the status of a template, in several writes if the rule
// requires it.
func (r *reconciler) writeAggregated(ctx context.Context, s aggregation, template *unstructured.Unstructured) error {
	for range maxStatusWrites {
		summed, err := r.rules.Rules(kindOf(s.template)).AggregateStatus(ctx, template, s.items)
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

// withMissingTargets adds an item of unknown health for each target cluster whose Work does
// not exist yet, in the order of names. Without it a template would look complete between its
// scheduling and its delivery: observedGeneration would change although a cluster does not
// have the template at all.
func withMissingTargets(items []workv1alpha2.AggregatedStatusItem, targets []workv1alpha2.TargetCluster) []workv1alpha2.AggregatedStatusItem {
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

// readTemplate returns the stored template, or nil when it does not exist. It reads from the
// API server when the cache is older than the template from which the binding was made, or
// older than this process's last write.
func (r *reconciler) readTemplate(ctx context.Context, s aggregation) (*unstructured.Unstructured, error) {
	if s.bypassCache {
		return r.templateReader.GetLive(ctx, kindOf(s.template), keyOf(s.template))
	}
	template, err := r.templateReader.Get(ctx, kindOf(s.template), keyOf(s.template))
	if err == nil && template != nil && r.isCacheStale(template, s) {
		return r.templateReader.GetLive(ctx, kindOf(s.template), keyOf(s.template))
	}
	return template, err
}

func (r *reconciler) isCacheStale(template *unstructured.Unstructured, s aggregation) bool {
	version := template.GetResourceVersion()
	return isOlder(version, s.template.ResourceVersion) || isOlder(version, r.writes.lastVersions(s.request).template)
}

// writeTemplate writes the status of summed if it differs and returns the stored object, or
// nil when nothing was written.
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
		return nil, r.recordMissingStatus(ctx, template)
	}
	if err != nil {
		return nil, fmt.Errorf("patching it: %w", err)
	}
	r.writes.recordTemplateWrite(request, stored.GetResourceVersion())
	return stored, nil
}

// recordMissingStatus finds out whether the template or the status of its kind does not exist.
// The API server answers the same for both. Nothing is left to do for a missing template.
func (r *reconciler) recordMissingStatus(ctx context.Context, template *unstructured.Unstructured) error {
	current, err := r.templateReader.GetLive(ctx, template.GroupVersionKind(), client.ObjectKeyFromObject(template))
	if current != nil && current.GetUID() == template.GetUID() {
		r.kindsWithoutStatus.add(template.GroupVersionKind(), r.now())
	}
	return err
}

// statusPatch returns the merge patch that gives before the status of after, or nil when
// nothing would change. The patch contains the resourceVersion from which it was computed:
// lists are replaced as a whole, and an aggregated status is valid only for the generation
// from which it was computed.
func statusPatch(before, after *unstructured.Unstructured) ([]byte, error) {
	if before == after {
		return nil, nil
	}
	old, err := statusJSON(before)
	if err != nil {
		return nil, err
	}
	wanted, err := statusJSON(after)
	if err != nil {
		return nil, err
	}
	difference, err := jsonpatch.CreateMergePatch(old, wanted)
	if err != nil {
		return nil, fmt.Errorf("comparing statuses: %w", err)
	}
	// A patch may contain nothing but removals of missing fields.
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

// statusJSON encodes an object that contains the status only.
func statusJSON(object *unstructured.Unstructured) ([]byte, error) {
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

// isTemplateOf reports whether an object is the one for which a binding was made, and not a
// later object of the same name.
func isTemplateOf(template *unstructured.Unstructured, reference workv1alpha2.ObjectReference) bool {
	return reference.UID == "" || template.GetUID() == reference.UID
}

func kindOf(reference workv1alpha2.ObjectReference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind)
}

func keyOf(reference workv1alpha2.ObjectReference) types.NamespacedName {
	return types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
}
