package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/reach"
)

// Here is what a user may write, and what then does not happen. All of it has
// always been accepted, so it is warned about and never refused.

// Gates that decide whether a field has an effect.
const (
	gateFailover                    = "Failover"
	gateFederatedQuotaEnforcement   = "FederatedQuotaEnforcement"
	gateMultiClusterService         = "MultiClusterService"
	gatePropagationPolicyPreemption = "PropagationPolicyPreemption"
	gateStatefulFailoverInjection   = "StatefulFailoverInjection"
	gateWorkloadAffinity            = "WorkloadAffinity"
)

// needsGate warns about a given field of a feature that is switched off.
func (r *report) needsGate(path *field.Path, gate string, given bool) {
	if given && r.disabled != nil && r.disabled(gate) {
		r.warn(path, "has no effect unless Karmada runs with the feature gate %s", gate)
	}
}

// selectors warns about selectors that select nothing. clusterWide is the kind of
// policy that selects what this one cannot, objects without namespaces; empty when
// the policy is one.
func (r *report) selectors(path *field.Path, selectors []policyv1alpha1.ResourceSelector, clusterWide string) {
	for i := range selectors {
		selector, at := &selectors[i], path.Index(i)
		version, err := schema.ParseGroupVersion(selector.APIVersion)
		switch {
		case err != nil:
			r.warn(at.Child("apiVersion"), "selects nothing: %v", err)
		case reach.DefaultSkippedAPIs().Skips(version.WithKind(selector.Kind)):
			r.warn(at, "selects nothing: %s of %s is never propagated", selector.Kind, selector.APIVersion)
		default:
			r.servedSelector(at, selector, version.WithKind(selector.Kind), clusterWide)
		}
		if selector.Name != "" && selector.LabelSelector != nil {
			r.warn(at.Child("labelSelector"), "has no effect beside name")
			continue
		}
		r.labelSelector(at.Child("labelSelector"), selector.LabelSelector)
	}
}

// ineffectivePropagation is about fields of a policy that have no effect, or not
// the one that their combination suggests.
func (r *report) ineffectivePropagation(path *field.Path, spec *policyv1alpha1.PropagationSpec) {
	if spec.Association {
		r.warn(path.Child("association"), "has no effect; use propagateDeps")
	}
	r.needsGate(path.Child("preemption"), gatePropagationPolicyPreemption, spec.Preemption == policyv1alpha1.PreemptAlways)
	for i, name := range spec.DependentOverrides {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			r.warn(path.Child("dependentOverrides").Index(i), "keeps everything waiting: no override policy can be named %q", name)
		}
	}
	if spec.ActivationPreference == policyv1alpha1.LazyActivation && suspends(spec.Suspension) {
		r.warn(path.Child("suspension"), "waits for the next change of each object: so does every change of a policy with activationPreference Lazy")
	}
	if spec.Failover == nil {
		return
	}
	path = path.Child("failover")
	if application := spec.Failover.Application; application != nil {
		r.preservation(path.Child("application", "statePreservation"), application.StatePreservation, application.PurgeMode)
	}
	if cluster := spec.Failover.Cluster; cluster != nil {
		r.needsGate(path.Child("cluster"), gateFailover, true)
		r.preservation(path.Child("cluster", "statePreservation"), cluster.StatePreservation, cluster.PurgeMode)
	}
}

func suspends(suspension *policyv1alpha1.Suspension) bool {
	return suspension != nil && (suspension.Dispatching != nil && *suspension.Dispatching ||
		suspension.DispatchingOnClusters != nil && len(suspension.DispatchingOnClusters.ClusterNames) > 0)
}

// preservation: state is carried over only when the old application is gone
// before the new one comes.
func (r *report) preservation(path *field.Path, preservation *policyv1alpha1.StatePreservation, mode policyv1alpha1.PurgeMode) {
	if preservation == nil || len(preservation.Rules) == 0 {
		return
	}
	if mode != policyv1alpha1.PurgeModeDirectly {
		r.warn(path, "has no effect with purgeMode %s; use Directly", mode)
		return
	}
	r.needsGate(path, gateStatefulFailoverInjection, true)
	for i, rule := range preservation.Rules {
		if err := failover.CheckPath(rule.JSONPath); err != nil {
			r.warn(path.Child("rules").Index(i).Child("jsonPath"), "keeps workloads where they are: %v", err)
		}
	}
}

// ineffectivePlacement is about parts of a placement that the others overrule.
func (r *report) ineffectivePlacement(path *field.Path, placement *policyv1alpha1.Placement) {
	r.needsGate(path.Child("workloadAffinity"), gateWorkloadAffinity, placement.WorkloadAffinity != nil)
	for i := range placement.SpreadConstraints {
		constraint, at := &placement.SpreadConstraints[i], path.Child("spreadConstraints").Index(i)
		if constraint.SpreadByLabel != "" {
			r.warn(at.Child("spreadByLabel"), "has no effect; use spreadByField")
		}
		switch constraint.SpreadByField {
		case policyv1alpha1.SpreadByFieldProvider, policyv1alpha1.SpreadByFieldZone:
			r.warn(at.Child("spreadByField"), "only leaves out clusters without %s; replicas are spread by region and cluster", constraint.SpreadByField)
		}
	}
	strategy := placement.ReplicaScheduling
	if strategy == nil {
		return
	}
	if len(placement.SpreadConstraints) > 0 && weighsStatically(strategy) {
		r.warn(path.Child("spreadConstraints"), "has no effect with static weights: all clusters are used")
	}
	r.ineffectiveStrategy(path.Child("replicaScheduling"), strategy)
}

// weighsStatically reports whether weights alone decide which clusters get
// replicas.
func weighsStatically(strategy *policyv1alpha1.ReplicaSchedulingStrategy) bool {
	if strategy.ReplicaSchedulingType != policyv1alpha1.ReplicaSchedulingTypeDivided ||
		strategy.ReplicaDivisionPreference != policyv1alpha1.ReplicaDivisionPreferenceWeighted {
		return false
	}
	weights := strategy.WeightPreference
	return weights == nil || len(weights.StaticWeightList) > 0 && weights.DynamicWeight == ""
}

func (r *report) ineffectiveStrategy(path *field.Path, strategy *policyv1alpha1.ReplicaSchedulingStrategy) {
	weights := strategy.WeightPreference
	switch {
	case strategy.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated:
		if strategy.ReplicaDivisionPreference != "" {
			r.warn(path.Child("replicaDivisionPreference"), "has no effect: Duplicated replicas are not divided")
		}
		if weights != nil {
			r.warn(path.Child("weightPreference"), "has no effect: Duplicated replicas are not divided")
		}
	case weights == nil:
	case strategy.ReplicaDivisionPreference == policyv1alpha1.ReplicaDivisionPreferenceAggregated:
		r.warn(path.Child("weightPreference"), "has no effect: Aggregated replicas are not weighed")
	case weights.DynamicWeight != "" && len(weights.StaticWeightList) > 0:
		r.warn(path.Child("weightPreference", "staticWeightList"), "has no effect beside dynamicWeight")
	}
}

// ineffectiveAffinity is about names that select nothing.
func (r *report) ineffectiveAffinity(path *field.Path, affinity *policyv1alpha1.ClusterAffinity) {
	for i, name := range affinity.ClusterNames {
		at := path.Child("clusterNames").Index(i)
		switch {
		case !canNameCluster(name):
			r.warn(at, "selects nothing: no cluster can be named %q", name)
		case slices.Contains(affinity.ExcludeClusters, name):
			r.warn(at, "has no effect: exclude names %s too", name)
		}
	}
	for i, name := range affinity.ExcludeClusters {
		if !canNameCluster(name) {
			r.warn(path.Child("exclude").Index(i), "has no effect: no cluster can be named %q", name)
		}
	}
	r.knownClusters(path.Child("clusterNames"), affinity.ClusterNames)
	r.knownClusters(path.Child("exclude"), affinity.ExcludeClusters)
	if affinity.FieldSelector == nil {
		return
	}
	for i := range affinity.FieldSelector.MatchExpressions {
		if len(affinity.FieldSelector.MatchExpressions[i].Values) == 0 {
			r.warn(path.Child("fieldSelector", "matchExpressions").Index(i).Child("values"), "is empty: name at least one value")
		}
	}
}

func (r *report) ineffectiveToleration(path *field.Path, toleration *corev1.Toleration) {
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute:
	default:
		r.warn(path.Child("effect"), "tolerates nothing: taints of clusters are NoSchedule or NoExecute")
	}
	if toleration.TolerationSeconds != nil && toleration.Effect == corev1.TaintEffectNoSchedule {
		r.warn(path.Child("tolerationSeconds"), "has no effect: only NoExecute taints are tolerated for a time")
	}
}

// ineffectiveOverriders is about values that nothing is done with.
func (r *report) ineffectiveOverriders(path *field.Path, overriders *policyv1alpha1.Overriders) {
	const reason = "has no effect: remove takes no value"
	for i := range overriders.Plaintext {
		if o := &overriders.Plaintext[i]; o.Operator == policyv1alpha1.OverriderOpRemove && len(o.Value.Raw) > 0 {
			r.warn(path.Child("plaintext").Index(i).Child("value"), reason)
		}
	}
	for i := range overriders.ImageOverrider {
		if o := &overriders.ImageOverrider[i]; o.Operator == policyv1alpha1.OverriderOpRemove && o.Value != "" {
			r.warn(path.Child("imageOverrider").Index(i).Child("value"), reason)
		}
	}
}
