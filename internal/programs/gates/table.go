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
	// Spec is its stage, and its value unless --feature-gates, AllAlpha or AllBeta
	// say otherwise.
	Spec featuregate.FeatureSpec
	// Help says what it switches, in one line.
	Help string
}

// Table returns all gates of Karmada. Every program knows all of them, so that
// one list of gates can be given to all programs of an installation.
func Table() []Gate { return slices.Clone(table) }

var (
	alpha   = featuregate.FeatureSpec{PreRelease: featuregate.Alpha}
	beta    = featuregate.FeatureSpec{PreRelease: featuregate.Beta, Default: true}
	betaOff = featuregate.FeatureSpec{PreRelease: featuregate.Beta}
)

var table = []Gate{
	{Failover, betaOff, "evict from clusters by taints"},
	{GracefulEviction, beta, "keep the old cluster until the new one is ready"},
	{PropagateDeps, beta, "send what a workload refers to along with it"},
	{CustomizedClusterResourceModeling, beta, "grades of nodes in the status of clusters and in estimates"},
	{PropagationPolicyPreemption, alpha, "let policies take templates over from policies of lower priority"},
	{MultiClusterService, alpha, "services over several clusters by MultiClusterService"},
	{ResourceQuotaEstimate, alpha, "count the quotas of member clusters in estimates"},
	{StatefulFailoverInjection, alpha, "hand the state of an evicted workload to its successor"},
	{PriorityBasedScheduling, beta, "schedule in the order of priority"},
	{FederatedQuotaEnforcement, alpha, "refuse what exceeds a FederatedResourceQuota"},
	{MultiplePodTemplatesScheduling, alpha, "schedule workloads of several Pod templates"},
	{ControllerPriorityQueue, beta, "handle changes before the initial list"},
	{WorkloadAffinity, alpha, "affinity and anti-affinity between workloads"},
	{SchedulingOvercommitProtection, alpha, "tell estimators what was just scheduled"},
	{OverrideIdentity, alpha, "let ClusterOverridePolicies change group, kind, namespace and name of objects"},
	{LargeStatus, alpha, "reflect statuses of more than 16 KiB, as long as the binding takes them"},
}
