// Package admission answers: is this object acceptable, and what is it completed
// with before it is stored?
//
// Default completes, Validate judges; both look at one object and the state it
// had before, and at nothing else but what Rules was given. The webhook server
// and the plugin inside an API server call the same functions.
//
// Invariants:
//   - Default is idempotent, apart from permanent ids of new policies and bindings,
//     which are always fresh: no user chooses the id of another tenant's object;
//   - every error names the exact path of the field, and all errors are
//     returned, not the first one;
//   - fields that are accepted but do nothing are warned about;
//   - objects of other types pass: nothing here is a reason to refuse them;
//   - an object that is being deleted is only held to what is immutable: nothing
//     that it says may keep its finalizers from being removed.
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

// Rules are the rules that depend on how the control plane is set up. The zero
// value is the default set-up without the checks that need an engine.
type Rules struct {
	// AllowNoExecuteTaints lets ClusterTaintPolicies evict workloads.
	AllowNoExecuteTaints bool
	// OverrideIdentity is the feature gate of that name.
	OverrideIdentity bool
	// MultiplePodTemplates is the feature MultiplePodTemplatesScheduling.
	MultiplePodTemplates bool
	// Disabled reports whether a feature gate, by name, is off in the control
	// plane; fields that need it are then warned about. nil means that nobody
	// knows, and that nobody is warned.
	Disabled func(gate string) bool
	// Served returns the kinds that the control plane serves, looked up anew where
	// it does not know the given one; nil when they are not known. A nil Served
	// knows nothing. Neither is a reason to warn.
	Served func(kind schema.GroupVersionKind) *Served
	// Clusters returns the names of the clusters, looked up anew where some of the
	// given ones are missing; nil when they are not known. A nil Clusters knows
	// nothing. Neither is a reason to warn.
	Clusters func(wanted []string) sets.Set[string]
	// CompileScript checks a Lua script; nil accepts all. It must bound its time.
	CompileScript func(script string) error
	// ParseSchedule checks a cron expression; nil accepts all.
	ParseSchedule func(expression string) error
	// LoadTimeZone checks the name of a time zone; nil accepts all.
	LoadTimeZone func(name string) error
	// Customizations lists the stored ResourceInterpreterCustomizations; nil
	// means that none are known.
	Customizations func() []*configv1alpha1.ResourceInterpreterCustomization
}

// Default completes an object in place. old is its present state, nil on
// creation; newID returns a new UUID on each call. Objects that need no
// completion, and those of other types, stay as they are.
func Default(obj, old runtime.Object, newID func() string) error {
	switch o := obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		defaultPropagationPolicy(o, previous(o, old), newID)
	case *policyv1alpha1.ClusterPropagationPolicy:
		defaultClusterPropagationPolicy(o, previous(o, old), newID)
	case *policyv1alpha1.OverridePolicy:
		defaultSelectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
	case *workv1alpha2.ResourceBinding:
		stampBinding(o, old, workv1alpha2.ResourceBindingPermanentIDLabel, newID)
	case *workv1alpha2.ClusterResourceBinding:
		stampBinding(o, old, workv1alpha2.ClusterResourceBindingPermanentIDLabel, newID)
	case *workv1alpha1.ResourceBinding:
		stampBinding(o, old, workv1alpha2.ResourceBindingPermanentIDLabel, newID)
	case *workv1alpha1.ClusterResourceBinding:
		stampBinding(o, old, workv1alpha2.ClusterResourceBindingPermanentIDLabel, newID)
	case *workv1alpha1.Work:
		// A manifest that cannot be read must not keep its Work from going.
		if o.DeletionTimestamp == nil {
			return work.Complete(o, newID)
		}
	case *autoscalingv1alpha1.FederatedHPA:
		defaultFederatedHPA(o)
	case *networkingv1alpha1.MultiClusterService:
		ensureID(o, networkingv1alpha1.MultiClusterServicePermanentIDLabel, newID)
	}
	return nil
}

// Validate judges an object for creation (old is nil) or update. Warnings are
// for the user's eyes and no reason to refuse the object.
func (r Rules) Validate(obj, old runtime.Object) (field.ErrorList, []string) {
	report := &report{disabled: r.Disabled, served: r.Served, clusters: r.Clusters}
	report.immutable(obj, old)
	if metadata, ok := obj.(metav1.Object); ok && metadata.GetDeletionTimestamp() == nil {
		r.validate(report, obj, old)
	}
	return report.errors, report.warnings
}

// immutable judges what stays as it is from the creation of an object to its end.
func (r *report) immutable(obj, old runtime.Object) {
	switch o := obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		r.policyIdentity(o, old, policyv1alpha1.PropagationPolicyPermanentIDLabel)
	case *policyv1alpha1.ClusterPropagationPolicy:
		r.policyIdentity(o, old, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel)
	case *workv1alpha2.ResourceBinding, *workv1alpha1.ResourceBinding:
		r.bindingID(obj, old, workv1alpha2.ResourceBindingPermanentIDLabel)
	case *workv1alpha2.ClusterResourceBinding, *workv1alpha1.ClusterResourceBinding:
		r.bindingID(obj, old, workv1alpha2.ClusterResourceBindingPermanentIDLabel)
	case *networkingv1alpha1.MultiClusterService:
		r.exposure(o, previous(o, old))
	}
}

// validate judges what an object says.
func (r Rules) validate(report *report, obj, old runtime.Object) {
	switch o := obj.(type) {
	case *policyv1alpha1.PropagationPolicy:
		report.selectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
		report.propagationSpec(&o.Spec, "ClusterPropagationPolicy")
	case *policyv1alpha1.ClusterPropagationPolicy:
		report.propagationSpec(&o.Spec, "")
	case *policyv1alpha1.OverridePolicy:
		report.selectorNamespaces(o.Spec.ResourceSelectors, o.Namespace)
		report.overrideSpec(&o.Spec, "ClusterOverridePolicy")
		report.overridePaths(&o.Spec, old)
		report.overrideIdentity(&o.Spec, old, o.Namespace, false)
	case *policyv1alpha1.ClusterOverridePolicy:
		report.overrideSpec(&o.Spec, "")
		report.overridePaths(&o.Spec, old)
		report.overrideIdentity(&o.Spec, old, "", r.OverrideIdentity)
	case *policyv1alpha1.ClusterTaintPolicy:
		report.clusterTaintPolicy(o, r.AllowNoExecuteTaints)
	case *policyv1alpha1.FederatedResourceQuota:
		report.federatedResourceQuota(o)
	case *workv1alpha2.ResourceBinding:
		report.binding(o, r.MultiplePodTemplates)
		report.bound(o.Namespace, &o.Spec.Resource, resourceOf(old))
	case *workv1alpha2.ClusterResourceBinding:
		report.bound("", &o.Spec.Resource, resourceOf(old))
	case *workv1alpha1.ResourceBinding:
		// The old version has no components; its annotations are the same.
		report.dependencies(o.GetAnnotations())
		report.bound(o.Namespace, resourceOf(o), resourceOf(old))
	case *workv1alpha1.ClusterResourceBinding:
		report.bound("", resourceOf(o), resourceOf(old))
	case *workv1alpha1.Work:
		report.work(o)
	case *configv1alpha1.ResourceInterpreterWebhookConfiguration:
		report.interpreterWebhooks(o)
	case *configv1alpha1.ResourceInterpreterCustomization:
		r.customization(report, o)
	case *autoscalingv1alpha1.FederatedHPA:
		report.federatedHPA(o)
	case *autoscalingv1alpha1.CronFederatedHPA:
		r.cronFederatedHPA(report, o)
	case *networkingv1alpha1.MultiClusterIngress:
		report.multiClusterIngress(o, previous(o, old))
	case *networkingv1alpha1.MultiClusterService:
		report.multiClusterService(o, previous(o, old))
	}
}

// previous is the earlier state in the type of the object, nil when there is
// none. The first argument only names the type.
func previous[T runtime.Object](_ T, old runtime.Object) T {
	typed, _ := old.(T)
	return typed
}
