package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

const (
	// serviceImports propagate the Services and EndpointSlices derived from them.
	serviceImportAPIVersion = "multicluster.x-k8s.io/v1alpha1"
	serviceImportKind       = "ServiceImport"

	// defaultGracePeriodSeconds is how long a workload may live on in a cluster
	// that it is moved away from.
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
	stampPolicy(policy, oldLabels, policyv1alpha1.PropagationPolicyPermanentIDLabel,
		policyv1alpha1.PropagationPolicyControllerFinalizer, newID)
}

func defaultClusterPropagationPolicy(policy, old *policyv1alpha1.ClusterPropagationPolicy, newID func() string) {
	defaultPropagationSpec(&policy.Spec)
	var oldLabels map[string]string
	if old != nil {
		oldLabels = old.Labels
	}
	stampPolicy(policy, oldLabels, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel,
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

// policyIdentity is about what a policy is known by: its id, to what it claims,
// and its scheduler, to what it has placed.
func (r *report) policyIdentity(object policy.Object, old runtime.Object, label string) {
	stored, _ := old.(policy.Object)
	if stored == nil {
		r.permanentID(object.GetLabels(), nil, label)
		return
	}
	r.permanentID(object.GetLabels(), stored.GetLabels(), label)
	if name := object.PropagationSpec().SchedulerName; name != stored.PropagationSpec().SchedulerName {
		r.add(field.Invalid(specPath().Child("schedulerName"), name,
			"the scheduler name is immutable; delete the policy and create it anew"))
	}
}

// selectorNamespaces keeps a namespaced policy from reaching into other
// namespaces.
func (r *report) selectorNamespaces(selectors []policyv1alpha1.ResourceSelector, namespace string) {
	for i := range selectors {
		if selectors[i].Namespace != namespace {
			r.add(field.Invalid(specPath().Child("resourceSelectors").Index(i).Child("namespace"),
				selectors[i].Namespace, "must be the namespace of the policy, "+namespace+"; a cluster-scoped policy may select elsewhere"))
		}
	}
}

func (r *report) propagationSpec(spec *policyv1alpha1.PropagationSpec, clusterWide string) {
	path := specPath()
	r.ineffectivePropagation(path, spec)
	r.selectors(path.Child("resourceSelectors"), spec.ResourceSelectors, clusterWide)
	r.preemption(spec)
	r.placement(path.Child("placement"), &spec.Placement)
	r.failover(path.Child("failover"), spec)
	r.suspension(path.Child("suspension"), spec.Suspension)
}

func (r *report) preemption(spec *policyv1alpha1.PropagationSpec) {
	if spec.Preemption != policyv1alpha1.PreemptAlways {
		return
	}
	for i := range spec.ResourceSelectors {
		if spec.ResourceSelectors[i].Name == "" {
			r.add(field.Required(specPath().Child("resourceSelectors").Index(i).Child("name"),
				"a policy with preemption Always has to name what it takes; give a name, or use preemption Never"))
		}
	}
}

func (r *report) suspension(path *field.Path, suspension *policyv1alpha1.Suspension) {
	if suspension != nil && suspension.DispatchingOnClusters != nil {
		r.knownClusters(path.Child("dispatchingOnClusters", "clusterNames"), suspension.DispatchingOnClusters.ClusterNames)
	}
	if suspension == nil || suspension.Dispatching == nil || !*suspension.Dispatching || suspension.DispatchingOnClusters == nil {
		return
	}
	if names := suspension.DispatchingOnClusters.ClusterNames; len(names) > 0 {
		r.add(field.Invalid(path.Child("dispatchingOnClusters", "clusterNames"), names,
			"dispatching is suspended for all clusters already; leave out one of the two"))
	}
}

func (r *report) failover(path *field.Path, spec *policyv1alpha1.PropagationSpec) {
	if spec.Failover == nil {
		return
	}
	if application := spec.Failover.Application; application != nil {
		if !spec.PropagateDeps {
			r.add(field.Invalid(specPath().Child("propagateDeps"), false,
				"application failover needs the dependencies to move along; set it to true"))
		}
		r.applicationFailover(path.Child("application"), application)
	}
	if cluster := spec.Failover.Cluster; cluster != nil {
		r.statePreservation(path.Child("cluster", "statePreservation"), cluster.StatePreservation)
	}
}

func (r *report) applicationFailover(path *field.Path, application *policyv1alpha1.ApplicationFailoverBehavior) {
	if seconds := application.DecisionConditions.TolerationSeconds; seconds != nil && *seconds < 0 {
		r.add(field.Invalid(path.Child("decisionConditions", "tolerationSeconds"), *seconds, "must not be negative"))
	}
	grace, gracePath := application.GracePeriodSeconds, path.Child("gracePeriodSeconds")
	graceful := application.PurgeMode == policyv1alpha1.PurgeModeGracefully
	switch {
	case graceful && grace == nil:
		r.add(field.Required(gracePath, "purgeMode Gracefully needs a grace period"))
	case !graceful && grace != nil:
		r.add(field.Invalid(gracePath, *grace, "only purgeMode Gracefully has a grace period; leave it out"))
	case grace != nil && *grace <= 0:
		r.add(field.Invalid(gracePath, *grace, "must be greater than 0"))
	}
	r.statePreservation(path.Child("statePreservation"), application.StatePreservation)
}

func (r *report) statePreservation(path *field.Path, preservation *policyv1alpha1.StatePreservation) {
	if preservation == nil {
		return
	}
	for i := range preservation.Rules {
		r.labelKey(path.Child("rules").Index(i).Child("aliasLabelName"), preservation.Rules[i].AliasLabelName)
	}
}
