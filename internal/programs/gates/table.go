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
	{Name: Failover, Spec: betaOff, Help: "evict workloads from clusters that have NoExecute taints"},
	{Name: GracefulEviction, Spec: beta, Help: "keep an evicted workload in its old cluster until the replacement in another cluster is ready"},
	{Name: PropagateDeps, Spec: beta, Help: "propagate the dependencies of a workload together with it"},
	{Name: CustomizedClusterResourceModeling, Spec: beta,
		Help: "report the nodes of each cluster by resource model, and use the models to estimate how many replicas fit"},
	{Name: PropagationPolicyPreemption, Spec: alpha, Help: "let a policy claim the templates of policies with a lower priority"},
	{Name: MultiClusterService, Spec: alpha, Help: "expose services across clusters with MultiClusterService"},
	{Name: ResourceQuotaEstimate, Spec: alpha, Help: "let the ResourceQuotas of a member cluster limit the estimated number of replicas"},
	{Name: StatefulFailoverInjection, Spec: alpha, Help: "pass the state of an evicted workload to its replacement"},
	{Name: PriorityBasedScheduling, Spec: beta, Help: "schedule the bindings with the highest priority first"},
	{Name: FederatedQuotaEnforcement, Spec: alpha, Help: "reject workloads that exceed a FederatedResourceQuota"},
	{Name: MultiplePodTemplatesScheduling, Spec: alpha, Help: "schedule workloads that have several Pod templates"},
	{Name: ControllerPriorityQueue, Spec: beta, Help: "reconcile changed objects before the objects of the initial list"},
	{Name: WorkloadAffinity, Spec: alpha, Help: "schedule workloads to the same clusters (affinity) or to different clusters (anti-affinity)"},
	{Name: SchedulingOvercommitProtection, Spec: alpha,
		Help: "subtract recently scheduled replicas from the estimated capacity, even if they are not running yet"},
	{Name: OverrideIdentity, Spec: alpha, Help: "let a ClusterOverridePolicy change the group, kind, namespace and name of an object"},
	{Name: LargeStatus, Spec: alpha, Help: "copy statuses that are larger than 16 KiB to Works, up to the size limit of the binding"},
}
