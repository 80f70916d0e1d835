package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// Kinds and resource names of the bindings.
const (
	ResourceKindResourceBinding          = "ResourceBinding"
	ResourcePluralResourceBinding        = "resourcebindings"
	ResourceKindClusterResourceBinding   = "ClusterResourceBinding"
	ResourcePluralClusterResourceBinding = "clusterresourcebindings"
)

// ResourceBinding binds a namespaced object to the clusters that it is
// propagated to. Karmada creates one for each propagated object, in the
// namespace of the object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories={karmada-io},shortName=rb
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="SCHEDULED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FULLYAPPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].reason`,name="SCHEDULED-REASON",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].reason`,name="FULLYAPPLIED-REASON",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.clusters`,name="CLUSTERS",type=string,priority=1
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the object and its clusters.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the status of the object in its clusters.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// BindingSpec returns the spec. ResourceBinding and ClusterResourceBinding both
// have this method.
func (b *ResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus returns the status. ResourceBinding and ClusterResourceBinding
// both have this method.
func (b *ResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

// ResourceBindingList is a list of ResourceBinding.
//
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ResourceBinding `json:"items"`
}

// ClusterResourceBinding binds a cluster-scoped object to the clusters that it
// is propagated to. Karmada creates one for each propagated object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope="Cluster",categories={karmada-io},shortName=crb
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].status`,name="SCHEDULED",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].status`,name="FULLYAPPLIED",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="AGE",type=date
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Scheduled")].reason`,name="SCHEDULED-REASON",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="FullyApplied")].reason`,name="FULLYAPPLIED-REASON",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.clusters`,name="CLUSTERS",type=string,priority=1
type ClusterResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines the object and its clusters.
	// +required
	Spec ResourceBindingSpec `json:"spec"`

	// Status is the status of the object in its clusters.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// BindingSpec returns the spec. ResourceBinding and ClusterResourceBinding both
// have this method.
func (b *ClusterResourceBinding) BindingSpec() *ResourceBindingSpec { return &b.Spec }

// BindingStatus returns the status. ResourceBinding and ClusterResourceBinding
// both have this method.
func (b *ClusterResourceBinding) BindingStatus() *ResourceBindingStatus { return &b.Status }

// ClusterResourceBindingList is a list of ClusterResourceBinding.
//
// +kubebuilder:object:root=true
type ClusterResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// Items are the bindings.
	Items []ClusterResourceBinding `json:"items"`
}

// ResourceBindingSpec defines the propagated object and its clusters. The
// scheduler sets clusters, and the failover controllers set
// gracefulEvictionTasks. Most other fields come from the policy.
type ResourceBindingSpec struct {
	// Resource is the object in the control plane that is propagated.
	// +required
	Resource ObjectReference `json:"resource"`

	// PropagateDeps propagates the dependencies of the object to the same
	// clusters. Default false.
	// +optional
	PropagateDeps bool `json:"propagateDeps,omitempty"`

	// ReplicaRequirements are the requirements of one replica. Unset for
	// objects without replicas, and for those with several components.
	// +optional
	ReplicaRequirements *ReplicaRequirements `json:"replicaRequirements,omitempty"`

	// Replicas is the desired total number of replicas. 0 for objects without
	// replicas, and for those with several components.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the parts of a workload that has several pod templates.
	// They need the feature gate MultiplePodTemplatesScheduling.
	// +optional
	Components []Component `json:"components,omitempty"`

	// Clusters are the clusters that the object is propagated to, with the
	// number of replicas of each. Set by the scheduler.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`

	// GracefulEvictionTasks are the clusters from which the object is evicted.
	// They get no new replicas. The object stays unchanged in them until the
	// task ends.
	// +optional
	GracefulEvictionTasks []GracefulEvictionTask `json:"gracefulEvictionTasks,omitempty"`

	// RequiredBy lists the bindings whose objects depend on this object, with
	// their clusters. This object is propagated to these clusters too.
	// +optional
	RequiredBy []BindingSnapshot `json:"requiredBy,omitempty"`

	// SchedulerName is the scheduler that places the object. Empty means
	// default-scheduler.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Placement is the placement of the policy. Unset for an object that is
	// propagated only as a dependency.
	// +optional
	Placement *policyv1alpha1.Placement `json:"placement,omitempty"`

	// Failover defines what happens when a cluster or the application in it
	// fails.
	// +optional
	Failover *policyv1alpha1.FailoverBehavior `json:"failover,omitempty"`

	// ConflictResolution defines what happens when a cluster has an object of
	// the same name that Karmada did not create: Abort does not change the
	// object and reports the conflict, Overwrite takes the object over. Default
	// Abort.
	// +optional
	// +kubebuilder:validation:Enum=Abort;Overwrite
	// +kubebuilder:default="Abort"
	ConflictResolution policyv1alpha1.ConflictResolution `json:"conflictResolution,omitempty"`

	// RescheduleTriggeredAt requests a fresh scheduling, which ignores the
	// current clusters, when it is later than status.lastScheduledTime.
	// +optional
	RescheduleTriggeredAt *metav1.Time `json:"rescheduleTriggeredAt,omitempty"`

	// Suspension stops the scheduling of the object or its delivery to clusters.
	// Unset means not suspended.
	// +optional
	Suspension *Suspension `json:"suspension,omitempty"`

	// PreserveResourcesOnDeletion keeps the object in the clusters when the
	// object in the control plane is deleted. Default false: it is deleted too.
	// +optional
	PreserveResourcesOnDeletion *bool `json:"preserveResourcesOnDeletion,omitempty"`

	// SchedulePriority is the priority with which the object is scheduled.
	// Unset means priority 0.
	// +optional
	SchedulePriority *SchedulePriority `json:"schedulePriority,omitempty"`

	// WorkloadAffinityGroups are the groups of workloads that the object belongs
	// to. They need the feature gate WorkloadAffinity.
	// +optional
	WorkloadAffinityGroups *WorkloadAffinityGroups `json:"workloadAffinityGroups,omitempty"`
}

// ObjectReference refers to an object in the control plane.
type ObjectReference struct {
	// APIVersion is the group and version of the object, such as apps/v1.
	// +required
	APIVersion string `json:"apiVersion"`

	// Kind is the kind of the object.
	// +required
	Kind string `json:"kind"`

	// Namespace is the namespace of the object; empty when it is cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the object.
	// +required
	Name string `json:"name"`

	// UID is the UID of the object.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// ResourceVersion is the resourceVersion of the object when the binding was
	// last updated from it.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// TargetCluster is a cluster that an object is propagated to.
type TargetCluster struct {
	// Name is the name of the cluster.
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas that the cluster gets. 0 for objects
	// without replicas.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Components are the numbers of replicas of each component that the cluster
	// gets, for workloads with several components.
	// +optional
	Components []TargetComponent `json:"components,omitempty"`
}

// TargetComponent is the share that a cluster gets of a component.
type TargetComponent struct {
	// Name is the name of the component.
	// +required
	Name string `json:"name"`

	// Replicas is the number of replicas that the cluster gets.
	// +required
	Replicas int32 `json:"replicas"`
}

// BindingSnapshot is the copy of a dependent's binding that the binding of a
// dependency holds.
type BindingSnapshot struct {
	// Namespace is the namespace of the binding; empty when it is
	// cluster-scoped.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name is the name of the binding.
	// +required
	Name string `json:"name"`

	// Clusters are the clusters that its object is propagated to.
	// +optional
	Clusters []TargetCluster `json:"clusters,omitempty"`
}

// Suspension stops the scheduling of an object or its delivery to clusters.
type Suspension struct {
	policyv1alpha1.Suspension `json:",inline"`

	// Scheduling true stops the scheduling. Other systems, such as queues, set
	// it. Karmada does not change it. Default false.
	// +optional
	Scheduling *bool `json:"scheduling,omitempty"`
}

// SchedulePriority is the priority with which an object is scheduled.
type SchedulePriority struct {
	// Priority is the value of the priority class: objects with a higher value
	// are scheduled earlier. Default 0.
	// +optional
	// +kubebuilder:default=0
	Priority int32 `json:"priority,omitempty"`
}

// WorkloadAffinityGroups are the groups of workloads that an object belongs to.
// A group is written as label=value.
type WorkloadAffinityGroups struct {
	// AffinityGroup is the group whose workloads prefer the same cluster.
	// +optional
	AffinityGroup string `json:"affinityGroup,omitempty"`

	// AntiAffinityGroup is the group whose workloads are kept in different
	// clusters.
	// +optional
	AntiAffinityGroup string `json:"antiAffinityGroup,omitempty"`
}
