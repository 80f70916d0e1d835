// Package admission validates objects, and sets their defaults, before they are stored.
//
// Default sets defaults and Validate validates. Both read only the object, its stored state and the
// fields of Options. The webhook server and the admission plugin in an API server call the same
// functions.
//
// Invariants:
//   - Default is idempotent, except for the permanent IDs of new policies and bindings. These IDs
//     are always generated, so that no user can choose the ID of an object of another tenant;
//   - every error contains the exact path of the field, and all errors are returned, not only the
//     first;
//   - a field that is accepted but has no effect causes a warning;
//   - objects of other types are accepted;
//   - an object that is being deleted is checked only for changes of immutable fields. Other
//     invalid fields must not prevent the removal of its finalizers.
package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
)

// Options holds the configuration and the functions that validation depends on. The zero value is
// the default configuration and skips the checks that need a function.
type Options struct {
	// AllowNoExecuteTaints allows NoExecute taints in ClusterTaintPolicies.
	AllowNoExecuteTaints bool
	// OverrideIdentity reports whether the feature gate OverrideIdentity is enabled.
	OverrideIdentity bool
	// MultiplePodTemplates reports whether the feature gate MultiplePodTemplatesScheduling is
	// enabled.
	MultiplePodTemplates bool
	// IsGateDisabled reports whether the feature gate with the given name is disabled in the
	// control plane. Fields that need a disabled gate cause a warning. A nil function means that
	// the gates are unknown and cause no warnings.
	IsGateDisabled func(gate string) bool
	// ServedKinds returns the kinds that the control plane serves, or nil if the kinds are unknown.
	// The function refreshes the kinds if the given kind is not among them. Unknown kinds, and a
	// nil function, cause no warnings.
	ServedKinds func(kind schema.GroupVersionKind) *ServedKinds
	// ClusterNames returns the names of the clusters, or nil if the names are unknown. The function
	// refreshes the names if a wanted name is not among them. Unknown names, and a nil function,
	// cause no warnings.
	ClusterNames func(wanted []string) sets.Set[string]
	// ServedByClusters returns the kinds that at least one member cluster serves. No kinds, and a nil
	// function, mean that the kinds are unknown and cause no warnings.
	ServedByClusters func() sets.Set[schema.GroupVersionKind]
	// ParseSchedule validates a cron expression. A nil function accepts all expressions.
	ParseSchedule func(expression string) error
	// LoadTimeZone validates the name of a time zone. A nil function accepts all names.
	LoadTimeZone func(name string) error
	// Customizations returns the stored ResourceInterpreterCustomizations. A nil function means
	// that no stored customizations are known.
	Customizations func() []*configv1alpha1.ResourceInterpreterCustomization
}

// Default sets the defaults of an object in place. old is the stored object, or nil on creation.
// newID returns a new UUID on each call. Default does not change objects without defaults and
// objects of other types.
func Default(obj, old runtime.Object, newID func() string) error {
	switch o := obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		defaultPropagationPolicy(o, typedOld(o, old), newID)
	case *policyv1alpha1.ClusterPropagationPolicy:
		defaultClusterPropagationPolicy(o, typedOld(o, old), newID)
	case *policyv1alpha1.OverridePolicy:
		defaultSelectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
	case *workv1alpha2.ResourceBinding:
		setBindingID(o, old, workv1alpha2.ResourceBindingPermanentIDLabel, newID)
	case *workv1alpha2.ClusterResourceBinding:
		setBindingID(o, old, workv1alpha2.ClusterResourceBindingPermanentIDLabel, newID)
	case *workv1alpha1.ResourceBinding:
		setBindingID(o, old, workv1alpha2.ResourceBindingPermanentIDLabel, newID)
	case *workv1alpha1.ClusterResourceBinding:
		setBindingID(o, old, workv1alpha2.ClusterResourceBindingPermanentIDLabel, newID)
	case *workv1alpha1.Work:
		// An invalid manifest must not prevent the deletion of its Work.
		if o.DeletionTimestamp == nil {
			return work.PrepareForStorage(o, newID)
		}
	case *autoscalingv1alpha1.FederatedHPA:
		defaultFederatedHPA(o)
	case *networkingv1alpha1.MultiClusterService:
		ensureID(o, networkingv1alpha1.MultiClusterServicePermanentIDLabel, newID)
	}
	return nil
}

// Validate validates an object for creation (old is nil) or update. It returns the
// errors and the warnings. Warnings are shown to the user and do not reject the object.
func (r Options) Validate(obj, old runtime.Object) (field.ErrorList, []string) {
	report := &report{isGateDisabled: r.IsGateDisabled, servedKinds: r.ServedKinds, clusters: r.ClusterNames}
	report.validateImmutable(obj, old)
	if metadata, ok := obj.(metav1.Object); ok && metadata.GetDeletionTimestamp() == nil {
		r.validateContent(report, obj, old)
	}
	return report.errors, report.warnings
}

// validateImmutable validates that immutable fields do not change.
func (r *report) validateImmutable(obj, old runtime.Object) {
	switch o := obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		r.validatePolicyIdentity(o, old, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	case *policyv1alpha1.ClusterPropagationPolicy:
		r.validatePolicyIdentity(o, old, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
	case *workv1alpha2.ResourceBinding, *workv1alpha1.ResourceBinding:
		r.validateBindingID(obj, old, workv1alpha2.ResourceBindingPermanentIDLabel)
	case *workv1alpha2.ClusterResourceBinding, *workv1alpha1.ClusterResourceBinding:
		r.validateBindingID(obj, old, workv1alpha2.ClusterResourceBindingPermanentIDLabel)
	case *networkingv1alpha1.MultiClusterService:
		r.validateExposureUnchanged(o, typedOld(o, old))
	}
}

// validateContent validates the fields of an object.
func (r Options) validateContent(report *report, obj, old runtime.Object) {
	switch o := obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		report.validateSelectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
		report.validatePropagationSpec(&o.Spec, "ClusterPropagationPolicy")
	case *policyv1alpha1.ClusterPropagationPolicy:
		report.validatePropagationSpec(&o.Spec, "")
	case *policyv1alpha1.OverridePolicy:
		report.validateSelectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
		report.validateOverrideSpec(&o.Spec, "ClusterOverridePolicy")
		report.validateOverridePaths(&o.Spec, old)
		report.validateImageOverriders(&o.Spec, old)
		report.validateOverrideIdentity(&o.Spec, old, o.Namespace, false)
	case *policyv1alpha1.ClusterOverridePolicy:
		report.validateOverrideSpec(&o.Spec, "")
		report.validateOverridePaths(&o.Spec, old)
		report.validateImageOverriders(&o.Spec, old)
		report.validateOverrideIdentity(&o.Spec, old, "", r.OverrideIdentity)
	case *policyv1alpha1.ClusterTaintPolicy:
		report.validateClusterTaintPolicy(o, r.AllowNoExecuteTaints)
	case *policyv1alpha1.FederatedResourceQuota:
		report.validateFederatedResourceQuota(o)
	case *workv1alpha2.ResourceBinding:
		report.validateBinding(o, r.MultiplePodTemplates)
		report.validateBindingReference(o.Namespace, &o.Spec.Resource, referencedResource(old))
	case *workv1alpha2.ClusterResourceBinding:
		report.validateBindingReference("", &o.Spec.Resource, referencedResource(old))
	case *workv1alpha1.ResourceBinding:
		// A v1alpha1 binding has no components to validate, but the same annotations as a v1alpha2
		// binding.
		report.validateDependencies(o.GetAnnotations())
		report.validateBindingReference(o.Namespace, referencedResource(o), referencedResource(old))
	case *workv1alpha1.ClusterResourceBinding:
		report.validateBindingReference("", referencedResource(o), referencedResource(old))
	case *workv1alpha1.Work:
		report.validateWork(o)
	case *configv1alpha1.ResourceInterpreterWebhookConfiguration:
		report.validateInterpreterWebhooks(o)
	case *configv1alpha1.ResourceInterpreterCustomization:
		r.validateCustomization(report, o)
	case *autoscalingv1alpha1.FederatedHPA:
		report.validateFederatedHPA(o)
	case *autoscalingv1alpha1.CronFederatedHPA:
		r.validateCronFederatedHPA(report, o)
	case *networkingv1alpha1.MultiClusterIngress:
		report.validateMultiClusterIngress(o, typedOld(o, old))
	case *networkingv1alpha1.MultiClusterService:
		report.validateMultiClusterService(o, typedOld(o, old))
	}
}

// typedOld returns the stored object in the type of the first argument, or nil if there is no
// stored object.
func typedOld[T runtime.Object](_ T, old runtime.Object) T {
	typed, _ := old.(T)
	return typed
}
