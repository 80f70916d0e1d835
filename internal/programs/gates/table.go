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
	// Spec is the stage and the default of the gate.
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
	{Failover, betaOff, "evict workloads from clusters by NoExecute taints"},
	{GracefulEviction, beta, "keep the workload in the old cluster until it is ready in the new cluster"},
	{PropagateDeps, beta, "propagate the dependencies of a workload together with it"},
	{CustomizedClusterResourceModeling, beta, "use resource models (grades of nodes) in the status of clusters and in estimates"},
	{PropagationPolicyPreemption, alpha, "let policies preempt policies of lower priority"},
	{MultiClusterService, alpha, "expose services across clusters with MultiClusterService"},
	{ResourceQuotaEstimate, alpha, "include the ResourceQuotas of member clusters in estimates"},
	{StatefulFailoverInjection, alpha, "pass the state of an evicted workload to its replacement"},
	{PriorityBasedScheduling, beta, "schedule bindings in the order of their priority"},
	{FederatedQuotaEnforcement, alpha, "reject workloads that exceed a FederatedResourceQuota"},
	{MultiplePodTemplatesScheduling, alpha, "schedule workloads with several Pod templates"},
	{ControllerPriorityQueue, beta, "reconcile changes before the objects of the initial list"},
	{WorkloadAffinity, alpha, "affinity and anti-affinity between workloads"},
	{SchedulingOvercommitProtection, alpha, "include recently scheduled replicas in estimates"},
	{OverrideIdentity, alpha, "let ClusterOverridePolicies change group, kind, namespace and name of objects"},
	{LargeStatus, alpha, "reflect statuses larger than 16 KiB, up to the limit of the binding"},
}
