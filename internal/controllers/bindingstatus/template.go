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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/tenancy"
)

// maxConflictAttempts is the maximum number of attempts to compute and write a status while other
// clients write the template.
const maxConflictAttempts = 5

// templateAggregation holds the input for the status of one template.
type templateAggregation struct {
	request  reconcile.Request
	template workv1alpha2.ObjectReference
	items    []workv1alpha2.AggregatedStatusItem
	// bypassCache is true if the cache is stale.
	bypassCache bool
}

// aggregateTemplateStatus writes the aggregated status of all clusters to the status of the
// template. It writes nothing for a kind without an aggregation rule or without a status.
func (r *reconciler) aggregateTemplateStatus(ctx context.Context, request reconcile.Request, bound binding.Object,
	items []workv1alpha2.AggregatedStatusItem) error {
	reference := bound.BindingSpec().Resource
	kind := kindOf(reference)
	// A user who can create a binding could make it refer to an object that this user must not
	// change.
	if !tenancy.IsAllowedReference(bound.GetNamespace(), reference) || r.rules.Rules(kind).AggregateStatus == nil ||
		r.kindsWithoutStatus.has(kind, r.now()) {
		return nil
	}
	s := templateAggregation{request: request, template: reference,
		items: withMissingTargets(items, binding.TargetClusters(bound.BindingSpec()))}
	var err error
	for range maxConflictAttempts {
		if err = r.tryAggregate(ctx, s); !apierrors.IsConflict(err) {
			break
		}
		s.bypassCache = true
	}
	return err
}

// tryAggregate makes one attempt to compute and write the status.
func (r *reconciler) tryAggregate(ctx context.Context, s templateAggregation) error {
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

// maxStatusWrites is the maximum number of writes for one status; see interpreter.Rules.
const maxStatusWrites = 2

// writeAggregated computes and writes the status of a template. It uses several writes if the rule
// requires them. It writes nothing if the rule was removed during the pass.
func (r *reconciler) writeAggregated(ctx context.Context, s templateAggregation, template *unstructured.Unstructured) error {
	aggregate := r.rules.Rules(kindOf(s.template)).AggregateStatus
	for range maxStatusWrites {
		if aggregate == nil {
			return nil
		}
		aggregated, err := aggregate(ctx, template, s.items)
		if err != nil {
			return &aggregationError{err}
		}
		stored, err := r.writeTemplate(ctx, s.request, template, aggregated)
		if isRejected(err) {
			return &aggregationError{err}
		}
		if err != nil || stored == nil {
			return err
		}
		template = stored
	}
	return nil
}

// aggregationError means that the rule did not return a status that the API server accepts.
type aggregationError struct{ error }

func (a *aggregationError) Unwrap() error { return a.error }

// isRejected reports whether the API server, or an admission plugin, does not accept the content of
// a write.
func isRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// withMissingTargets adds an item of unknown health for each target cluster whose Work does not
// exist yet, and keeps the items sorted by name. Without these items a template would look complete
// between its scheduling and its delivery, because observedGeneration would change although a
// cluster does not have the template yet.
func withMissingTargets(items []workv1alpha2.AggregatedStatusItem,
	targets []workv1alpha2.TargetCluster) []workv1alpha2.AggregatedStatusItem {
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

// readTemplate returns the stored template, or nil if the template does not exist. It reads from
// the API server if the cache is older than the template from which the binding was made, or older
// than the last write of this process.
func (r *reconciler) readTemplate(ctx context.Context, s templateAggregation) (*unstructured.Unstructured, error) {
	if s.bypassCache {
		return r.templateReader.GetLive(ctx, kindOf(s.template), keyOf(s.template))
	}
	template, err := r.templateReader.Get(ctx, kindOf(s.template), keyOf(s.template))
	if err == nil && template != nil && r.isCacheStale(template, s) {
		return r.templateReader.GetLive(ctx, kindOf(s.template), keyOf(s.template))
	}
	return template, err
}

func (r *reconciler) isCacheStale(template *unstructured.Unstructured, s templateAggregation) bool {
	return isOlder(template.GetResourceVersion(), s.template.ResourceVersion) || r.writes.IsStale(s.request, template)
}

// isOlder reports whether the first version is older than the second. It returns false for versions
// that cannot be compared.
func isOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// writeTemplate writes the status of aggregated if it differs from the status of the template. It
// returns the stored object, or nil if it wrote nothing.
func (r *reconciler) writeTemplate(ctx context.Context, request reconcile.Request, template,
	aggregated *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	change, err := statusPatch(template, aggregated)
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
	r.writes.Record(request, stored)
	return stored, nil
}

// recordMissingStatus finds out why the API server responded with NotFound to a write of the
// status: the template does not exist, or its kind has no status. It records a kind without status.
// If the template does not exist, it does nothing.
func (r *reconciler) recordMissingStatus(ctx context.Context, template *unstructured.Unstructured) error {
	current, err := r.templateReader.GetLive(ctx, template.GroupVersionKind(), client.ObjectKeyFromObject(template))
	if current != nil && current.GetUID() == template.GetUID() {
		r.kindsWithoutStatus.add(template.GroupVersionKind(), r.now())
	}
	return err
}

// statusPatch returns the merge patch that changes the status of before to the status of after, or
// nil if nothing would change. The patch contains the resourceVersion from which it was computed,
// because a merge patch replaces whole lists, and because an aggregated status is valid only for
// the generation from which it was computed.
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
	// The result of the patch is compared, because a patch that only removes missing fields is not
	// empty but changes nothing.
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

// statusJSON encodes an object that contains only the status of the given object.
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

// isTemplateOf reports whether an object is the template for which a binding was made, and not a
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
