package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	multiclusterv1alpha1 "karmada.io/karmada/api/multicluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

const (
	// serviceImportAPIVersion and serviceImportKind identify the kind whose dependencies are always
	// propagated, namely the Services and EndpointSlices that are derived from a ServiceImport.
	serviceImportAPIVersion = multiclusterv1alpha1.GroupName + "/v1alpha1"
	serviceImportKind       = "ServiceImport"

	// defaultGracePeriodSeconds is the default grace period of an eviction.
	defaultGracePeriodSeconds = 600
)

func specPath() *field.Path { return field.NewPath("spec") }

func defaultPropagationPolicy(policy, old *policyv1alpha1.PropagationPolicy, newID func() string) {
	defaultSelectorNamespaces(policy.Spec.ResourceSelectors, policy.Namespace)
	defaultPropagationSpec(&policy.Spec)
	var oldLabels map[string]string
	if old != nil {
		oldLabels = old.Labels
	}
	setPolicyID(policy, oldLabels, policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.PropagationPolicyControllerFinalizer, newID)
}

func defaultClusterPropagationPolicy(policy, old *policyv1alpha1.ClusterPropagationPolicy, newID func() string) {
	defaultPropagationSpec(&policy.Spec)
	var oldLabels map[string]string
	if old != nil {
		oldLabels = old.Labels
	}
	setPolicyID(policy, oldLabels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
		policyv1alpha1.ClusterPropagationPolicyControllerFinalizer, newID)
}

func defaultSelectorNamespaces(selectors []policyv1alpha1.ResourceSelector, namespace string) {
	for i := range selectors {
		if selectors[i].Namespace == "" {
			selectors[i].Namespace = namespace
		}
	}
}

func defaultPropagationSpec(spec *policyv1alpha1.PropagationSpec) {
	for _, selector := range spec.ResourceSelectors {
		if selector.APIVersion == serviceImportAPIVersion && selector.Kind == serviceImportKind {
			spec.PropagateDeps = true
		}
	}
	defaultPlacement(&spec.Placement)
	if spec.Failover == nil || spec.Failover.Application == nil {
		return
	}
	application := spec.Failover.Application
	if application.PurgeMode == policyv1alpha1.PurgeModeGracefully && application.GracePeriodSeconds == nil {
		application.GracePeriodSeconds = new(int32(defaultGracePeriodSeconds))
	}
}

func defaultPlacement(placement *policyv1alpha1.Placement) {
	for i := range placement.SpreadConstraints {
		constraint := &placement.SpreadConstraints[i]
		if constraint.SpreadByField == "" && constraint.SpreadByLabel == "" {
			constraint.SpreadByField = policyv1alpha1.SpreadByFieldCluster
		}
		if constraint.MinGroups == 0 {
			constraint.MinGroups = 1
		}
	}
	strategy := placement.ReplicaScheduling
	if strategy != nil && strategy.ReplicaDivisionPreference == "" &&
		strategy.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDivided {
		strategy.ReplicaDivisionPreference = policyv1alpha1.ReplicaDivisionPreferenceWeighted
	}
}

// validatePolicyIdentity validates that the policy's permanent ID and scheduler name do not change.
// Templates that the policy claimed refer to the ID, and the scheduler with this name schedules their
// bindings.
func (r *report) validatePolicyIdentity(object policy.Object, old runtime.Object, label string) {
	stored, _ := old.(policy.Object)
	if stored == nil {
		r.validatePermanentID(object.GetLabels(), nil, label)
		return
	}
	r.validatePermanentID(object.GetLabels(), stored.GetLabels(), label)
	if name := object.PropagationSpec().SchedulerName; name != stored.PropagationSpec().SchedulerName {
		r.addErrors(field.Invalid(specPath().Child("schedulerName"), name,
			"the scheduler name is immutable; delete the policy and create it anew"))
	}
}

// validateSelectorNamespaces validates that a namespaced policy selects objects in its own namespace
// only.
func (r *report) validateSelectorNamespaces(selectors []policyv1alpha1.ResourceSelector, namespace string) {
	for i := range selectors {
		if selectors[i].Namespace != namespace {
			r.addErrors(field.Invalid(specPath().Child("resourceSelectors").Index(i).Child("namespace"),
				selectors[i].Namespace, "must be the namespace of the policy, "+namespace+"; only a cluster-scoped policy can select other namespaces"))
		}
	}
}

func (r *report) validatePropagationSpec(spec *policyv1alpha1.PropagationSpec, clusterWide string) {
	path := specPath()
	r.warnIneffectivePropagation(path, spec)
	r.warnIneffectiveSelectors(path.Child("resourceSelectors"), spec.ResourceSelectors, clusterWide)
	r.validatePreemption(spec)
	r.validatePlacement(path.Child("placement"), &spec.Placement)
	r.validateFailover(path.Child("failover"), spec)
	r.validateSuspension(path.Child("suspension"), spec.Suspension)
}

func (r *report) validatePreemption(spec *policyv1alpha1.PropagationSpec) {
	if spec.Preemption != policyv1alpha1.PreemptAlways {
		return
	}
	for i := range spec.ResourceSelectors {
		if spec.ResourceSelectors[i].Name == "" {
			r.addErrors(field.Required(specPath().Child("resourceSelectors").Index(i).Child("name"),
				"a policy with preemption Always has to name what it takes; give a name, or use preemption Never"))
		}
	}
}

func (r *report) validateSuspension(path *field.Path, suspension *policyv1alpha1.Suspension) {
	if suspension != nil && suspension.DispatchingOnClusters != nil {
		r.warnUnknownClusters(path.Child("dispatchingOnClusters", "clusterNames"), suspension.DispatchingOnClusters.ClusterNames)
	}
	if suspension == nil || suspension.Dispatching == nil || !*suspension.Dispatching || suspension.DispatchingOnClusters == nil {
		return
	}
	if names := suspension.DispatchingOnClusters.ClusterNames; len(names) > 0 {
		r.addErrors(field.Invalid(path.Child("dispatchingOnClusters", "clusterNames"), names,
			"dispatching is suspended for all clusters already; leave out one of the two"))
	}
}

func (r *report) validateFailover(path *field.Path, spec *policyv1alpha1.PropagationSpec) {
	if spec.Failover == nil {
		return
	}
	if application := spec.Failover.Application; application != nil {
		if !spec.PropagateDeps {
			r.addErrors(field.Invalid(specPath().Child("propagateDeps"), false,
				"application failover needs the dependencies to move along; set it to true"))
		}
		r.validateApplicationFailover(path.Child("application"), application)
	}
	if cluster := spec.Failover.Cluster; cluster != nil {
		r.validateStatePreservation(path.Child("cluster", "statePreservation"), cluster.StatePreservation)
	}
}

func (r *report) validateApplicationFailover(path *field.Path, application *policyv1alpha1.ApplicationFailoverBehavior) {
	if seconds := application.DecisionConditions.TolerationSeconds; seconds != nil && *seconds < 0 {
		r.addErrors(field.Invalid(path.Child("decisionConditions", "tolerationSeconds"), *seconds, "must not be negative"))
	}
	grace, gracePath := application.GracePeriodSeconds, path.Child("gracePeriodSeconds")
	graceful := application.PurgeMode == policyv1alpha1.PurgeModeGracefully
	switch {
	case graceful && grace == nil:
		r.addErrors(field.Required(gracePath, "purgeMode Gracefully needs a grace period"))
	case !graceful && grace != nil:
		r.addErrors(field.Invalid(gracePath, *grace, "only purgeMode Gracefully has a grace period; leave it out"))
	case grace != nil && *grace <= 0:
		r.addErrors(field.Invalid(gracePath, *grace, "must be greater than 0"))
	}
	r.validateStatePreservation(path.Child("statePreservation"), application.StatePreservation)
}

func (r *report) validateStatePreservation(path *field.Path, preservation *policyv1alpha1.StatePreservation) {
	if preservation == nil {
		return
	}
	for i := range preservation.Rules {
		r.validateLabelKey(path.Child("rules").Index(i).Child("aliasLabelName"), preservation.Rules[i].AliasLabelName)
	}
}
