package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/tenancy"
)

// The checks in this file warn about fields without an effect. Such fields are not rejected, because
// upstream accepts them.

// Feature gates that determine whether a field has an effect.
const (
	gateFailover                    = "Failover"
	gateFederatedQuotaEnforcement   = "FederatedQuotaEnforcement"
	gatePropagationPolicyPreemption = "PropagationPolicyPreemption"
	gateStatefulFailoverInjection   = "StatefulFailoverInjection"
	gateWorkloadAffinity            = "WorkloadAffinity"
)

// warnDisabledGate warns about a field that is set although its feature gate is disabled.
func (r *report) warnDisabledGate(path *field.Path, gate string, given bool) {
	if given && r.isGateDisabled != nil && r.isGateDisabled(gate) {
		r.addWarning(path, "has no effect unless Karmada runs with the feature gate %s", gate)
	}
}

// warnIneffectiveSelectors warns about selectors that select nothing. clusterWide is the kind of the
// cluster-scoped policy that can select cluster-scoped objects. It is empty if the validated policy
// itself is cluster-scoped.
func (r *report) warnIneffectiveSelectors(path *field.Path, selectors []policyv1alpha1.ResourceSelector, clusterWide string) {
	for i := range selectors {
		selector, itemPath := &selectors[i], path.Index(i)
		version, err := schema.ParseGroupVersion(selector.APIVersion)
		switch {
		case err != nil:
			r.addWarning(itemPath.Child("apiVersion"), "selects nothing: %v", err)
		case tenancy.DefaultSkippedAPIs().Skips(version.WithKind(selector.Kind)):
			r.addWarning(itemPath, "selects nothing: %s of %s is never propagated", selector.Kind, selector.APIVersion)
		default:
			r.warnUnservedSelector(itemPath, selector, version.WithKind(selector.Kind), clusterWide)
		}
		if selector.Name != "" && selector.LabelSelector != nil {
			r.addWarning(itemPath.Child("labelSelector"), "has no effect beside name")
			continue
		}
		r.warnInvalidLabelSelector(itemPath.Child("labelSelector"), selector.LabelSelector)
	}
}

// warnIneffectivePropagation warns about fields of a propagation policy that have no effect, or a
// different effect than users expect.
func (r *report) warnIneffectivePropagation(path *field.Path, spec *policyv1alpha1.PropagationSpec) {
	if spec.Association {
		r.addWarning(path.Child("association"), "has no effect; use propagateDeps")
	}
	r.warnDisabledGate(path.Child("preemption"), gatePropagationPolicyPreemption, spec.Preemption == policyv1alpha1.PreemptAlways)
	for i, name := range spec.DependentOverrides {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			r.addWarning(path.Child("dependentOverrides").Index(i), "blocks propagation: no override policy can be named %q", name)
		}
	}
	if spec.ActivationPreference == policyv1alpha1.LazyActivation && isDispatchingSuspended(spec.Suspension) {
		r.addWarning(path.Child("suspension"), "takes effect with the next change of each object, as every change of a policy with activationPreference Lazy")
	}
	if spec.Failover == nil {
		return
	}
	path = path.Child("failover")
	if application := spec.Failover.Application; application != nil {
		r.warnIneffectivePreservation(path.Child("application", "statePreservation"), application.StatePreservation, application.PurgeMode)
	}
	if cluster := spec.Failover.Cluster; cluster != nil {
		r.warnDisabledGate(path.Child("cluster"), gateFailover, true)
		r.warnIneffectivePreservation(path.Child("cluster", "statePreservation"), cluster.StatePreservation, cluster.PurgeMode)
	}
}

func isDispatchingSuspended(suspension *policyv1alpha1.Suspension) bool {
	return suspension != nil && (suspension.Dispatching != nil && *suspension.Dispatching ||
		suspension.DispatchingOnClusters != nil && len(suspension.DispatchingOnClusters.ClusterNames) > 0)
}

// warnIneffectivePreservation warns about state preservation that has no effect. The state is preserved
// only if the application's old copy is deleted before its new copy is created.
func (r *report) warnIneffectivePreservation(path *field.Path, preservation *policyv1alpha1.StatePreservation,
	mode policyv1alpha1.PurgeMode) {
	if preservation == nil || len(preservation.Rules) == 0 {
		return
	}
	if mode != policyv1alpha1.PurgeModeDirectly {
		r.addWarning(path, "has no effect with purgeMode %s; use Directly", mode)
		return
	}
	r.warnDisabledGate(path, gateStatefulFailoverInjection, true)
	for i, rule := range preservation.Rules {
		if err := failover.ValidateJSONPath(rule.JSONPath); err != nil {
			r.addWarning(path.Child("rules").Index(i).Child("jsonPath"), "prevents failover: %v", err)
		}
	}
}

// warnIneffectivePlacement warns about fields of a placement that other fields override.
func (r *report) warnIneffectivePlacement(path *field.Path, placement *policyv1alpha1.Placement) {
	r.warnDisabledGate(path.Child("workloadAffinity"), gateWorkloadAffinity, placement.WorkloadAffinity != nil)
	for i := range placement.SpreadConstraints {
		constraint, itemPath := &placement.SpreadConstraints[i], path.Child("spreadConstraints").Index(i)
		if constraint.SpreadByLabel != "" {
			r.addWarning(itemPath.Child("spreadByLabel"), "has no effect; use spreadByField")
		}
		switch constraint.SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider, policyv1alpha1.SpreadByFieldZone:
			r.addWarning(itemPath.Child("spreadByField"), "only excludes clusters without %s; replicas are spread by region and cluster",
				constraint.SpreadByField)
		}
	}
	strategy := placement.ReplicaScheduling
	if strategy == nil {
		return
	}
	if len(placement.SpreadConstraints) > 0 && hasOnlyStaticWeights(strategy) {
		r.addWarning(path.Child("spreadConstraints"), "has no effect with static weights: all clusters are used")
	}
	r.warnIneffectiveStrategy(path.Child("replicaScheduling"), strategy)
}

// hasOnlyStaticWeights reports whether static weights alone determine which clusters get replicas.
func hasOnlyStaticWeights(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided ||
		strategy.ReplicaDivisionPreference != policyv1alpha1.ReplicaDivisionPreferenceWeighted {
		return false
	}
	weights := strategy.WeightPreference
	return weights == nil || len(weights.StaticWeightList) > 0 && weights.DynamicWeight == ""
}

func (r *report) warnIneffectiveStrategy(path *field.Path, strategy *policyv1alpha1.ReplicaSchedulingStrategy) {
	weights := strategy.WeightPreference
	switch {
	case strategy.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		if strategy.ReplicaDivisionPreference != "" {
			r.addWarning(path.Child("replicaDivisionPreference"), "has no effect: Duplicated replicas are not divided")
		}
		if weights != nil {
			r.addWarning(path.Child("weightPreference"), "has no effect: Duplicated replicas are not divided")
		}
	case weights == nil:
	case strategy.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		r.addWarning(path.Child("weightPreference"), "has no effect: Aggregated replicas are not weighted")
	case weights.DynamicWeight != "" && len(weights.StaticWeightList) > 0:
		r.addWarning(path.Child("weightPreference", "staticWeightList"), "has no effect beside dynamicWeight")
	}
}

// warnIneffectiveAffinity warns about cluster names and selectors that select nothing.
func (r *report) warnIneffectiveAffinity(path *field.Path, affinity *policyv1alpha1.ClusterAffinity) {
	for i, name := range affinity.ClusterNames {
		itemPath := path.Child("clusterNames").Index(i)
		switch {
		case !isValidClusterName(name):
			r.addWarning(itemPath, "selects nothing: no cluster can be named %q", name)
		case slices.Contains(affinity.ExcludeClusters, name):
			r.addWarning(itemPath, "has no effect: %s is also in exclude", name)
		}
	}
	for i, name := range affinity.ExcludeClusters {
		if !isValidClusterName(name) {
			r.addWarning(path.Child("exclude").Index(i), "has no effect: no cluster can be named %q", name)
		}
	}
	r.warnUnknownClusters(path.Child("clusterNames"), affinity.ClusterNames)
	r.warnUnknownClusters(path.Child("exclude"), affinity.ExcludeClusters)
	if affinity.FieldSelector == nil {
		return
	}
	for i := range affinity.FieldSelector.MatchExpressions {
		if len(affinity.FieldSelector.MatchExpressions[i].Values) == 0 {
			r.addWarning(path.Child("fieldSelector", "matchExpressions").Index(i).Child("values"), "is empty: add at least one value")
		}
	}
}

func (r *report) warnIneffectiveToleration(path *field.Path, toleration *corev1.Toleration) {
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute:
	default:
		r.addWarning(path.Child("effect"), "tolerates nothing: taints of clusters are NoSchedule or NoExecute")
	}
	if toleration.TolerationSeconds != nil && toleration.Effect == corev1.TaintEffectNoSchedule {
		r.addWarning(path.Child("tolerationSeconds"), "has no effect: only NoExecute taints are tolerated for a time")
	}
}

// warnIneffectiveOverriders warns about values that an overrider's operator ignores.
func (r *report) warnIneffectiveOverriders(path *field.Path, overriders *policyv1alpha1.Overriders) {
	const reason = "has no effect: remove takes no value"
	for i := range overriders.Plaintext {
		if o := &overriders.Plaintext[i]; o.Operator == policyv1alpha1.OverriderOpRemove && len(o.Value.Raw) > 0 {
			r.addWarning(path.Child("plaintext").Index(i).Child("value"), reason)
		}
	}
	for i := range overriders.ImageOverrider {
		if o := &overriders.ImageOverrider[i]; o.Operator == policyv1alpha1.OverriderOpRemove && o.Value != "" {
			r.addWarning(path.Child("imageOverrider").Index(i).Child("value"), reason)
		}
	}
}
