package gates

import (
	"slices"

	"k8s.io/component-base/featuregate"
)

// Names of the gates.
const (
	Failover                          featuregate.Feature = "Failover"
	GracefulEviction                  featuregate.Feature = "GracefulEviction"
	PropagateDeps                     featuregate.Feature = "PropagateDeps"
	CustomizedClusterResourceModeling featuregate.Feature = "CustomizedClusterResourceModeling"
	PropagationPolicyPreemption       featuregate.Feature = "PropagationPolicyPreemption"
	MultiClusterService               featuregate.Feature = "MultiClusterService"
	ResourceQuotaEstimate             featuregate.Feature = "ResourceQuotaEstimate"
	StatefulFailoverInjection         featuregate.Feature = "StatefulFailoverInjection"
	PriorityBasedScheduling           featuregate.Feature = "PriorityBasedScheduling"
	FederatedQuotaEnforcement         featuregate.Feature = "FederatedQuotaEnforcement"
	MultiplePodTemplatesScheduling    featuregate.Feature = "MultiplePodTemplatesScheduling"
	ControllerPriorityQueue           featuregate.Feature = "ControllerPriorityQueue"
	WorkloadAffinity                  featuregate.Feature = "WorkloadAffinity"
	SchedulingOvercommitProtection    featuregate.Feature = "SchedulingOvercommitProtection"
	OverrideIdentity                  featuregate.Feature = "OverrideIdentity"
	LargeStatus                       featuregate.Feature = "LargeStatus"
)

// Gate is one row of the table.
type Gate struct {
	Name featuregate.Feature
	// Spec contains the stage and the default of the gate.
	Spec featuregate.FeatureSpec
	// Help describes the feature in one line.
	Help string
}

// Table returns all feature gates of Karmada. Every program knows all of them, so that all
// programs of an installation accept the same value of --feature-gates.
func Table() []Gate { return slices.Clone(table) }

var (
	alpha   = featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
	beta    = featuregate.FeatureSpec{PreRelease: featuregate.Beta, Default: true}
	betaOff = featuregate.FeatureSpec{PreRelease: featuregate.Beta}
)

var table = []Gate{
	{Name: Failover, Spec: betaOff, Help: "evict workloads from clusters by NoExecute taints"},
	{Name: GracefulEviction, Spec: beta, Help: "keep the workload in the old cluster until it is ready in the new cluster"},
	{Name: PropagateDeps, Spec: beta, Help: "propagate the dependencies of a workload together with it"},
	{Name: CustomizedClusterResourceModeling, Spec: beta, Help: "use resource models (grades of nodes) in the status of clusters and in estimates"},
	{Name: PropagationPolicyPreemption, Spec: alpha, Help: "let policies preempt policies of lower priority"},
	{Name: MultiClusterService, Spec: alpha, Help: "expose services across clusters with MultiClusterService"},
	{Name: ResourceQuotaEstimate, Spec: alpha, Help: "include the ResourceQuotas of member clusters in estimates"},
	{Name: StatefulFailoverInjection, Spec: alpha, Help: "pass the state of an evicted workload to its replacement"},
	{Name: PriorityBasedScheduling, Spec: beta, Help: "schedule bindings in the order of their priority"},
	{Name: FederatedQuotaEnforcement, Spec: alpha, Help: "reject workloads that exceed a FederatedResourceQuota"},
	{Name: MultiplePodTemplatesScheduling, Spec: alpha, Help: "schedule workloads with several Pod templates"},
	{Name: ControllerPriorityQueue, Spec: beta, Help: "reconcile changes before the objects of the initial list"},
	{Name: WorkloadAffinity, Spec: alpha, Help: "affinity and anti-affinity between workloads"},
	{Name: SchedulingOvercommitProtection, Spec: alpha, Help: "include recently scheduled replicas in estimates"},
	{Name: OverrideIdentity, Spec: alpha, Help: "let ClusterOverridePolicies change group, kind, namespace and name of objects"},
	{Name: LargeStatus, Spec: alpha, Help: "reflect statuses larger than 16 KiB, up to the limit of the binding"},
}
