package controllermanager

import (
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
)

// newTable returns the controllers of the controller manager, in the order in which they process
// an object.
func (o *Options) newTable() programs.ControllerTable {
	return programs.ControllerTable{
		{Name: "cluster", Help: "manages the objects in the control plane that belong to a member cluster", Options: &o.Monitor,
			Add: o.addCluster},
		{Name: "clusterStatus", Help: "reports health, APIs and resources of push mode clusters", Options: &o.ClusterStatus,
			Add: o.addClusterStatus},
		{Name: "unifiedAuth", Help: "grants users access to member clusters through the control plane", Add: o.addUnifiedAuth},
		{Name: "", Help: "claims templates for policies and creates their bindings", Add: o.addDetector},
		{Name: "", Help: "propagates the dependencies of a workload together with it", Gate: gates.PropagateDeps, Add: o.addDependencies},
		{Name: "namespace", Help: "propagates namespaces to member clusters", Add: o.addNamespace},
		{Name: "binding", Help: "turns bindings into Works", Add: o.addBinding},
		{Name: "execution", Help: "applies Works to push mode clusters", Add: o.addExecution},
		{Name: "", Help: "allows or holds the deletions that agents request", Add: o.addWorkDeletion},
		{Name: "workStatus", Help: "copies the status of objects in push mode clusters to their Works", Add: o.addWorkStatus},
		{Name: "bindingStatus", Help: "aggregates the statuses of all clusters into bindings and templates", Add: o.addBindingStatus},

		{Name: "agentcsrapproving", Help: "approves the certificate requests of agents and creates their RBAC roles",
			Add: o.addAgentCSRApproving},
		{Name: "applicationFailover", Help: "evicts unhealthy workloads", Add: o.addApplicationFailover},
		{Name: "clustertaintpolicy", Help: "adds taints to clusters and removes them, depending on the conditions of the clusters",
			Gate: gates.Failover, Add: o.addClusterTaintPolicy},
		{Name: "cronFederatedHorizontalPodAutoscaler", Help: "scales workloads on a schedule", Kinds: []string{"CronFederatedHPA"}},
		{Name: "deploymentReplicasSyncer", Help: "copies the replicas of member clusters back to the template", OffByDefault: true,
			Add: o.addDeploymentReplicasSyncer},
		{Name: "endpointSlice", Help: "imports the endpoints of exported services"},
		{Name: "endpointsliceCollect", Help: "collects endpoints for MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "endpointsliceDispatch", Help: "distributes endpoints of MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "federatedHorizontalPodAutoscaler", Help: "scales workloads by the metrics of all member clusters",
			Kinds: []string{"FederatedHPA"}, Options: newAutoscalerFlags()},
		{Name: "federatedResourceQuotaEnforcement", Help: "computes the usage of FederatedResourceQuotas", Gate: gates.FederatedQuotaEnforcement,
			Options: &o.Quotas, Add: o.addQuotaEnforcement},
		{Name: "federatedResourceQuotaStatus", Help: "reports the quotas of member clusters", Add: o.addQuotaStatus},
		{Name: "federatedResourceQuotaSync", Help: "propagates quotas to member clusters", Add: o.addQuotaSync},
		{Name: "gracefulEviction", Help: "ends graceful evictions when the replacement is ready", Add: o.addGracefulEviction},
		{Name: "hpaScaleTargetMarker", Help: "labels the workloads that a HorizontalPodAutoscaler of a member cluster scales",
			OffByDefault: true, Add: o.addHPAScaleTargetMarker},
		{Name: "multiclusterservice", Help: "exposes services across clusters", Gate: gates.MultiClusterService,
			Kinds: []string{"MultiClusterService"}},
		{Name: "remedy", Help: "reports the actions of Remedies in the clusters that they match", Add: o.addRemedy},
		{Name: "serviceExport", Help: "collects endpoints of exported services"},
		{Name: "serviceImport", Help: "creates services for ServiceImports"},
		{Name: "workloadRebalancer", Help: "triggers rescheduling of workloads", Add: o.addWorkloadRebalancer},
	}
}
