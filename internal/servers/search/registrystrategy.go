package search

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/extensionserver"
)

// registryStrategy validates and prepares creates and updates of the main resource.
type registryStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	rules admission.Options
}

var (
	_ rest.RESTCreateStrategy  = registryStrategy{}
	_ rest.RESTUpdateStrategy  = registryStrategy{}
	_ rest.RESTDeleteStrategy  = registryStrategy{}
	_ rest.ResetFieldsStrategy = registryStrategy{}
)

func newRegistryStrategy(typer runtime.ObjectTyper, rules admission.Options) registryStrategy {
	return registryStrategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, rules: rules}
}

// NamespaceScoped returns false, because ResourceRegistries are cluster-scoped.
func (registryStrategy) NamespaceScoped() bool { return false }

// AllowCreateOnUpdate returns false, so that a PUT to an unknown name returns an error.
func (registryStrategy) AllowCreateOnUpdate() bool { return false }

// AllowUnconditionalUpdate returns true, so that an update without resourceVersion is allowed.
func (registryStrategy) AllowUnconditionalUpdate() bool { return true }

// Canonicalize does nothing, because every notation of a registry is stored as it is.
func (registryStrategy) Canonicalize(runtime.Object) {}

// PrepareForCreate clears the status, which only karmada-search writes.
func (registryStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	created := obj.(*searchv1alpha1.ResourceRegistry)
	created.Status = searchv1alpha1.ResourceRegistryStatus{}
	created.Generation = 1
}

// PrepareForUpdate keeps the status and increments the generation when the spec changes.
func (registryStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*searchv1alpha1.ResourceRegistry), old.(*searchv1alpha1.ResourceRegistry)
	updated.Status = stored.Status
	updated.Generation = stored.Generation
	if !apiequality.Semantic.DeepEqual(updated.Spec, stored.Spec) {
		updated.Generation++
	}
}

// Validate rejects invalid registries.
func (s registryStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	errs, _ := s.rules.ValidateRegistry(obj.(*searchv1alpha1.ResourceRegistry))
	return errs
}

// ValidateUpdate rejects invalid registries.
func (s registryStrategy) ValidateUpdate(ctx context.Context, obj, _ runtime.Object) field.ErrorList {
	return s.Validate(ctx, obj)
}

// WarningsOnCreate returns warnings about fields that have no effect, or more effects than users
// expect.
func (s registryStrategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	_, warnings := s.rules.ValidateRegistry(obj.(*searchv1alpha1.ResourceRegistry))
	return warnings
}

// WarningsOnUpdate returns the warnings that the stored registry does not cause too.
func (s registryStrategy) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	known := s.WarningsOnCreate(ctx, old)
	return slices.DeleteFunc(s.WarningsOnCreate(ctx, obj), func(warning string) bool { return slices.Contains(known, warning) })
}

// GetResetFields tells server-side apply that the main resource does not write the status.
func (registryStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extensionserver.ResetFields(searchv1alpha1.GroupVersion, "status")
}

// registryStatusStrategy prepares updates of the status subresource. It accepts all changes.
type registryStatusStrategy struct {
	registryStrategy
}

// PrepareForUpdate keeps all fields except the status.
func (registryStatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	updated, stored := obj.(*searchv1alpha1.ResourceRegistry), old.(*searchv1alpha1.ResourceRegistry)
	updated.Spec = stored.Spec
	metav1.ResetObjectMetaForStatus(updated, stored)
}

// ValidateUpdate accepts all changes.
func (registryStatusStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}

// WarningsOnUpdate returns no warnings, because only karmada-search writes the status.
func (registryStatusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// GetResetFields tells server-side apply that this subresource writes only the status.
func (registryStatusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return extensionserver.ResetFields(searchv1alpha1.GroupVersion, "spec", "metadata")
}
