package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kinds and resource names of the propagation policies.
const (
	ResourceKindPropagationPolicy          = "PropagationPolicy"
	ResourcePluralPropagationPolicy        = "propagationpolicies"
	ResourceKindClusterPropagationPolicy   = "ClusterPropagationPolicy"
	ResourcePluralClusterPropagationPolicy = "clusterpropagationpolicies"
)

// PropagationPolicy selects objects of its own namespace, and the member
// clusters to which they are propagated.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories={karmada-io},shortName=pp
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="CONFLICT-RESOLUTION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="PRIORITY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type PropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired propagation.
	// +required
	Spec PropagationSpec `json:"spec"`
}

// PropagationSpec returns the spec. PropagationPolicy and
// ClusterPropagationPolicy both have this method.
func (p *PropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// PropagationPolicyList is a list of PropagationPolicy.
//
// +kubebuilder:object:root=true
type PropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []PropagationPolicy `json:"items"`
}

// ClusterPropagationPolicy selects objects of any namespace and cluster-scoped
// objects, and the member clusters to which they are propagated. A
// PropagationPolicy that selects the same object always takes precedence.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope="Cluster",categories={karmada-io},shortName=cpp
// +kubebuilder:printcolumn:JSONPath=`.spec.conflictResolution`,name="CONFLICT-RESOLUTION",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.priority`,name="PRIORITY",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
type ClusterPropagationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired propagation.
	// +required
	Spec PropagationSpec `json:"spec"`
}

// PropagationSpec returns the spec. PropagationPolicy and
// ClusterPropagationPolicy both have this method.
func (p *ClusterPropagationPolicy) PropagationSpec() *PropagationSpec { return &p.Spec }

// ClusterPropagationPolicyList is a list of ClusterPropagationPolicy.
//
// +kubebuilder:object:root=true
type ClusterPropagationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the policies.
	Items []ClusterPropagationPolicy `json:"items"`
}

// PropagationSpec is the desired propagation of the selected objects.
//
// +kubebuilder:validation:XValidation:rule="!has(self.preemption) || self.preemption != 'Always' || self.resourceSelectors.all(s, has(s.name) && size(s.name) > 0)",message="a policy with preemption Always has to name what it takes; give a name, or use preemption Never",reason=FieldValueRequired,fieldPath=".resourceSelectors"
// +kubebuilder:validation:XValidation:rule="!has(self.failover) || !has(self.failover.application) || (has(self.propagateDeps) && self.propagateDeps)",message="application failover needs the dependencies to move along; set propagateDeps to true",fieldPath=".propagateDeps"
type PropagationSpec struct {
	// ResourceSelectors select the objects to propagate. An object is selected
	// when any of them matches.
	// +required
	// +kubebuilder:validation:MinItems=1
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// Association has no effect and remains for compatibility. Use
	// propagateDeps.
	// +optional
	Association bool `json:"association,omitempty"`

	// PropagateDeps propagates the objects that a selected object refers to
	// (ConfigMaps, Secrets, ServiceAccounts, PersistentVolumeClaims and others)
	// to the same clusters. They need no policy. Default false.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// Placement defines the clusters that get the objects, and how replicas are
	// divided among them. Empty means every cluster, each with all replicas.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinity) || !has(self.clusterAffinities) || size(self.clusterAffinities) == 0",message="clusterAffinity and clusterAffinities exclude each other; make the first one an entry of the second",fieldPath=".clusterAffinities"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinity) || !has(self.clusterAffinity.fieldSelector) || !has(self.clusterAffinity.fieldSelector.matchExpressions) || self.clusterAffinity.fieldSelector.matchExpressions.all(e, e.key in ['provider','region','zone'] && e.operator in ['In','NotIn'])",message="clusters are selected by the fields provider, region and zone, with the operators In and NotIn",fieldPath=".clusterAffinity"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinities) || [0,1,2,3,4,5,6,7].all(i, i >= size(self.clusterAffinities) || (![0,1,2,3,4,5,6,7].exists(j, j > i && j < size(self.clusterAffinities) && self.clusterAffinities[j].affinityName == self.clusterAffinities[i].affinityName)))",message="every affinityName is there once",reason=FieldValueDuplicate,fieldPath=".clusterAffinities"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinities) || [0,1,2,3,4,5,6,7].all(i, i >= size(self.clusterAffinities) || (!has(self.clusterAffinities[i].fieldSelector) || !has(self.clusterAffinities[i].fieldSelector.matchExpressions) || [0,1,2,3,4,5,6,7].all(j, j >= size(self.clusterAffinities[i].fieldSelector.matchExpressions) || (self.clusterAffinities[i].fieldSelector.matchExpressions[j].key in ['provider','region','zone'] && self.clusterAffinities[i].fieldSelector.matchExpressions[j].operator in ['In','NotIn']))))",message="clusters are selected by the fields provider, region and zone, with the operators In and NotIn",fieldPath=".clusterAffinities"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinities) || self.clusterAffinities.all(a, !has(a.overflowAffinities) || size(a.overflowAffinities) == 0) || (has(self.replicaScheduling) && self.replicaScheduling.replicaSchedulingType == 'Divided' && has(self.replicaScheduling.replicaDivisionPreference) && (self.replicaScheduling.replicaDivisionPreference == 'Aggregated' || has(self.replicaScheduling.weightPreference) && has(self.replicaScheduling.weightPreference.dynamicWeight)))",message="overflowAffinities only with Divided replicas that are Aggregated, or Weighted with a dynamicWeight",reason=FieldValueForbidden,fieldPath=".clusterAffinities"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterAffinities) || self.clusterAffinities.all(a, !has(a.overflowAffinities) || size(a.overflowAffinities) == 0 || has(a.labelSelector) || has(a.fieldSelector) || (has(a.clusterNames) && size(a.clusterNames) > 0) || (has(a.exclude) && size(a.exclude) > 0))",message="overflowAffinities need an affinity that does not select all clusters, so that something can overflow",reason=FieldValueForbidden,fieldPath=".clusterAffinities"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterTolerations) || !self.clusterTolerations.exists(c, has(c.operator) && c.operator == 'Lt')",message="taints of clusters are tolerated with the operators Exists and Equal",fieldPath=".clusterTolerations"
	// +kubebuilder:validation:XValidation:rule="!has(self.clusterTolerations) || !self.clusterTolerations.exists(c, has(c.operator) && c.operator == 'Gt')",message="taints of clusters are tolerated with the operators Exists and Equal",fieldPath=".clusterTolerations"
	// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || !self.spreadConstraints.exists(c, has(c.spreadByField) && has(c.spreadByLabel) && c.spreadByLabel != '')",message="spreadByField and spreadByLabel exclude each other; leave out spreadByLabel",fieldPath=".spreadConstraints"
	// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || !self.spreadConstraints.exists(c, has(c.minGroups) && c.minGroups < 0)",message="minGroups must not be negative",fieldPath=".spreadConstraints"
	// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || !self.spreadConstraints.exists(c, has(c.maxGroups) && c.maxGroups < 0)",message="maxGroups must not be negative",fieldPath=".spreadConstraints"
	// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || [0,1,2,3,4,5,6,7].all(i, i >= size(self.spreadConstraints) || (!has(self.spreadConstraints[i].maxGroups) || self.spreadConstraints[i].maxGroups <= 0 || !has(self.spreadConstraints[i].minGroups) || self.spreadConstraints[i].maxGroups >= self.spreadConstraints[i].minGroups))",message="maxGroups must not be less than minGroups",fieldPath=".spreadConstraints"
	// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || [0,1,2,3,4,5,6,7].all(i, i >= size(self.spreadConstraints) || (!has(self.spreadConstraints[i].spreadByField) || ![0,1,2,3,4,5,6,7].exists(j, j > i && j < size(self.spreadConstraints) && has(self.spreadConstraints[j].spreadByField) && self.spreadConstraints[j].spreadByField == self.spreadConstraints[i].spreadByField)))",message="a field is spread by once; make one constraint of the two",reason=FieldValueDuplicate,fieldPath=".spreadConstraints"
	// +kubebuilder:validation:XValidation:rule="!has(self.spreadConstraints) || size(self.spreadConstraints) > 8 || ![0,1,2,3,4,5,6,7].exists(i, i < size(self.spreadConstraints) && has(self.spreadConstraints[i].spreadByField)) || [0,1,2,3,4,5,6,7].exists(i, i < size(self.spreadConstraints) && has(self.spreadConstraints[i].spreadByField) && self.spreadConstraints[i].spreadByField == 'cluster')",message="spreading by a field needs a constraint with spreadByField cluster as well",fieldPath=".spreadConstraints"
	// +kubebuilder:validation:XValidation:rule="!has(self.workloadAffinity) || !has(self.workloadAffinity.affinity) || !has(self.workloadAffinity.antiAffinity) || self.workloadAffinity.affinity.groupByLabelKey != self.workloadAffinity.antiAffinity.groupByLabelKey",message="affinity and antiAffinity must group by different labels",fieldPath=".workloadAffinity"
	Placement Placement `json:"placement,omitempty"`

	// Priority ranks the policies of one kind that select the same object: the
	// highest claims it. Policies of equal priority are ranked by selector (by
	// name, then by label, then all objects of the kind), then by the name of
	// the policy in alphabetical order. May be negative. Default 0.
	// +optional
	// +kubebuilder:default=0
	Priority *int32 `json:"priority,omitempty"`

	// Preemption defines whether the policy may take over objects that a policy
	// of lower priority has claimed. Always requires a name in every resource
	// selector. Default Never.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never
	// +kubebuilder:default="Never"
	Preemption PreemptionBehavior `json:"preemption,omitempty"`

	// DependentOverrides are names of override policies that must exist before
	// anything is propagated: OverridePolicies of the same namespace for a
	// PropagationPolicy, ClusterOverridePolicies for a ClusterPropagationPolicy.
	// +optional
	DependentOverrides []string `json:"dependentOverrides,omitempty"`

	// SchedulerName is the scheduler that places the objects. It cannot be
	// changed later. Default default-scheduler.
	// +optional
	// +kubebuilder:default="default-scheduler"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the scheduler name is immutable; delete the policy and create it anew"
	SchedulerName string `json:"schedulerName,omitempty"`

	// Failover defines what happens when a cluster or the application in it
	// fails. Unset means that an unhealthy application is not moved.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.application) || !has(self.application.decisionConditions.tolerationSeconds) || self.application.decisionConditions.tolerationSeconds >= 0",message="must not be negative",fieldPath=".application.decisionConditions.tolerationSeconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.application) || !has(self.application.purgeMode) || self.application.purgeMode != 'Gracefully' || has(self.application.gracePeriodSeconds)",message="purgeMode Gracefully needs a grace period",reason=FieldValueRequired,fieldPath=".application.gracePeriodSeconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.application) || !has(self.application.gracePeriodSeconds) || (has(self.application.purgeMode) && self.application.purgeMode == 'Gracefully')",message="only purgeMode Gracefully has a grace period; leave it out",fieldPath=".application.gracePeriodSeconds"
	// +kubebuilder:validation:XValidation:rule="!has(self.application) || !has(self.application.gracePeriodSeconds) || self.application.gracePeriodSeconds > 0",message="must be greater than 0",fieldPath=".application.gracePeriodSeconds"
	Failover *FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution defines what happens when a cluster has an object of
	// the same name that Karmada did not create: Abort does not change the
	// object and reports the conflict, Overwrite takes the object over. Default
	// Abort.
	// +optional
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +kubebuilder:default="Abort"
	ConflictResolution ConflictResolution `json:"conflictResolution,omitempty"`

	// ActivationPreference defines when a change of the policy takes effect.
	// Empty means at once. Lazy means at the next change of each selected
	// object by its user.
	// +optional
	// +kubebuilder:validation:Enum=Lazy
	ActivationPreference ActivationPreference `json:"activationPreference,omitempty"`

	// Suspension stops the delivery of changes to clusters. Unset means not
	// suspended.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.dispatching) || !self.dispatching || !has(self.dispatchingOnClusters) || !has(self.dispatchingOnClusters.clusterNames) || size(self.dispatchingOnClusters.clusterNames) == 0",message="dispatching is suspended for all clusters already; leave out one of the two",fieldPath=".dispatchingOnClusters.clusterNames"
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the objects in the clusters when the
	// object in the control plane is deleted. Default false: they are deleted
	// too.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority defines the priority with which the objects are
	// scheduled. Unset means priority 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`
}

// ResourceSelector selects objects of one kind.
type ResourceSelector struct {
	// APIVersion is the group and version of the objects, such as apps/v1. It
	// must be the version that the API server prefers.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the objects.
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the objects. In a namespaced policy it must
	// be, and defaults to, the namespace of the policy; in a cluster-scoped one
	// empty means all namespaces.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of one object; labelSelector is then ignored. Empty means
	// all names.
	// +optional
	Name string `json:"name,omitempty"`

	// LabelSelector selects by labels when name is empty. Unset selects all
	// objects of the kind; so does an empty one, but it ranks above an unset one
	// when policies compete.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// PreemptionBehavior defines whether a policy takes over objects that other
// policies have claimed.
type PreemptionBehavior string

// Values of PreemptionBehavior.
const (
	// PreemptAlways takes over objects of policies of lower priority, and from
	// ClusterPropagationPolicies when the policy is namespaced.
	PreemptAlways PreemptionBehavior = "Always"
	// PreemptNever leaves claimed objects to their policies.
	PreemptNever PreemptionBehavior = "Never"
)

// ConflictResolution defines what happens to an object in a cluster that has
// the same name but was not created by Karmada.
type ConflictResolution string

// Values of ConflictResolution.
const (
	// ConflictOverwrite takes the object over and applies the manifest.
	ConflictOverwrite ConflictResolution = "Overwrite"
	// ConflictAbort does not change the object and reports the conflict.
	ConflictAbort ConflictResolution = "Abort"
)

// ActivationPreference defines when a changed policy takes effect.
type ActivationPreference string

// LazyActivation applies a changed policy to an object at the next change of
// that object by its user.
const LazyActivation ActivationPreference = "Lazy"

// Suspension stops the delivery of changes to clusters. Objects that were
// delivered before stay unchanged.
type Suspension struct {
	// Dispatching true stops the delivery to all clusters. Default false.
	// +optional
	Dispatching *bool `json:"dispatching,omitempty"`

	// DispatchingOnClusters stops the delivery to some clusters. It cannot be
	// combined with dispatching: true.
	// +optional
	DispatchingOnClusters *SuspendClusters `json:"dispatchingOnClusters,omitempty"`
}

// SuspendClusters lists the clusters to which the delivery is suspended.
type SuspendClusters struct {
	// ClusterNames are the names of the clusters.
	// +optional
	ClusterNames []string `json:"clusterNames,omitempty"`
}

// SchedulePriority refers to the priority class that defines the scheduling
// priority.
type SchedulePriority struct {
	// PriorityClassSource defines where the class is looked up.
	// KubePriorityClass is a PriorityClass of scheduling.k8s.io/v1 in the
	// control plane.
	// +required
	// +kubebuilder:validation:Enum=KubePriorityClass
	PriorityClassSource PriorityClassSource `json:"priorityClassSource"`

	// PriorityClassName is the name of the class. The objects are not
	// propagated before the class exists.
	// +required
	PriorityClassName string `json:"priorityClassName"`
}

// PriorityClassSource defines where a priority class is looked up.
type PriorityClassSource string

// Values of PriorityClassSource. Only KubePriorityClass is accepted by the API;
// the other names are reserved.
const (
	// KubePriorityClass is a PriorityClass of scheduling.k8s.io/v1.
	KubePriorityClass PriorityClassSource = "KubePriorityClass"
	// PodPriorityClass is the class named in the pod template.
	PodPriorityClass PriorityClassSource = "PodPriorityClass"
	// FederatedPriorityClass is a class that Karmada defines.
	FederatedPriorityClass PriorityClassSource = "FederatedPriorityClass"
)
