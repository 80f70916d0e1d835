// Package admission validates objects, and sets their defaults, before they are stored.
//
// Default sets defaults and Validate validates. Both read only the object, its stored state and the
// fields of Options. The webhook server and the admission plugin in an API server call the same
// functions.
//
// Invariants:
//   - Default is idempotent, except for the permanent IDs of new policies and bindings. These IDs are
//     always generated, so that no user can choose the ID of another tenant's object.
//   - Every error contains the exact path of the field, and all errors are returned, not only the
//     first.
//   - A field that is accepted but has no effect causes a warning.
//   - Objects of kinds that the package does not know are accepted.
//   - An object in deletion is checked only for changes of immutable fields. Other invalid fields must
//     not prevent the removal of its finalizers.
package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
)

// Options contains the configuration and the functions on which validation depends. The zero value is
// the default configuration and skips the checks that need a function.
type Options struct {
	// AllowNoExecuteTaints allows NoExecute taints in ClusterTaintPolicies.
	AllowNoExecuteTaints bool
	// OverrideIdentity reports whether the feature gate OverrideIdentity is enabled.
	OverrideIdentity bool
	// MultiplePodTemplates reports whether the feature gate MultiplePodTemplatesScheduling is
	// enabled.
	MultiplePodTemplates bool
	// IsGateDisabled reports whether the feature gate with the given name is disabled in the control
	// plane. Fields that need a disabled gate cause a warning. Nil means that the gates' states are
	// unknown and cause no warnings.
	IsGateDisabled func(gate string) bool
	// ServedKinds returns the kinds that the control plane serves, or nil if they are unknown. It
	// refreshes the kinds if the given kind is not among them. If the kinds are unknown or ServedKinds
	// is nil, there are no warnings about kinds.
	ServedKinds func(kind schema.GroupVersionKind) *ServedKinds
	// ClusterNames returns the names of the clusters, or nil if they are unknown. It refreshes the
	// names if a wanted name is not among them. If the names are unknown or ClusterNames is nil, there
	// are no warnings about names.
	ClusterNames func(wanted []string) sets.Set[string]
	// ServedByClusters returns the kinds that at least one member cluster serves. An empty result, or a
	// nil function, means that the kinds are unknown and cause no warnings.
	ServedByClusters func() sets.Set[schema.GroupVersionKind]
	// ParseSchedule validates a cron expression. If it is nil, all expressions are accepted.
	ParseSchedule func(expression string) error
	// LoadTimeZone validates a time zone name. If it is nil, all names are accepted.
	LoadTimeZone func(name string) error
	// Customizations returns the stored ResourceInterpreterCustomizations. Nil means that the stored
	// customizations are unknown.
	Customizations func() []*configv1alpha1.ResourceInterpreterCustomization
}

// Default sets the object's defaults in place. old is the stored object, or nil on creation. newID
// returns a new UUID on each call. Default does not change kinds of objects that have no defaults.
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

// Validate validates an object for creation (old is nil) or update. It returns the errors and the
// warnings. Warnings are shown to the user, but do not reject the object.
func (r Options) Validate(obj, old runtime.Object) (field.ErrorList, []string) {
	report := &report{isGateDisabled: r.IsGateDisabled, servedKinds: r.ServedKinds, clusters: r.ClusterNames}
	report.validateImmutable(obj, old)
	if metadata, ok := obj.(metav1.Object); ok && metadata.GetDeletionTimestamp() == nil {
		r.validateContent(report, obj, old)
	}
	return report.errors, report.warnings
}

// validateImmutable rejects changes of immutable fields.
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

// validateContent validates all fields of an object except for their immutability.
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
		report.validateFederatedResourceQuota(o, typedOld(o, old))
	case *workv1alpha2.ResourceBinding:
		report.validateBinding(o, r.MultiplePodTemplates)
		report.validateBindingReference(o.Namespace, &o.Spec.Resource, referencedResource(old))
	case *workv1alpha2.ClusterResourceBinding:
		report.validateBindingReference("", &o.Spec.Resource, referencedResource(old))
	case *workv1alpha1.ResourceBinding:
		// A v1alpha1 binding has no components to validate, but has the same annotations as a v1alpha2
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
	case *remedyv1alpha1.Remedy:
		report.warnIneffectiveRemedy(o)
	case *networkingv1alpha1.MultiClusterIngress:
		report.validateMultiClusterIngress(o, typedOld(o, old))
	case *networkingv1alpha1.MultiClusterService:
		report.validateMultiClusterService(o, typedOld(o, old))
	case *appsv1alpha1.WorkloadRebalancer:
		report.warnIneffectiveRebalancer(&o.Spec)
	}
}

// typedOld returns the stored object with the first argument's type, or nil if there is no stored
// object.
func typedOld[T runtime.Object](_ T, old runtime.Object) T {
	typed, _ := old.(T)
	return typed
}
