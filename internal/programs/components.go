package programs

import (
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/controllers/agentcsrapproving"
	"karmada.io/karmada/internal/controllers/binding"
	"karmada.io/karmada/internal/controllers/bindingstatus"
	"karmada.io/karmada/internal/controllers/cluster"
	"karmada.io/karmada/internal/controllers/clustermonitor"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/clustertaintpolicy"
	"karmada.io/karmada/internal/controllers/dependencies"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/namespace"
	"karmada.io/karmada/internal/controllers/unifiedauth"
	"karmada.io/karmada/internal/controllers/workdeletion"
	"karmada.io/karmada/internal/controllers/workstatus"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/scheduler"
)

// Names of the components.
const (
	ControllerManager = "karmada-controller-manager"
	Scheduler         = "karmada-scheduler"
	Agent             = "karmada-agent"
)

// Components is the table of the components of a control plane.
func Components() []Component {
	return []Component{
		{
			Name: ControllerManager, Help: "propagates templates to member clusters and aggregates their status", Add: addControllers,
			RequiredKinds: []client.Object{
				&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{},
				&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{},
				&policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{},
			},
		},
		{
			Name: Scheduler, Help: "selects the clusters of each workload, and the replicas in each cluster", Add: addScheduler,
			RequiredKinds: []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}},
		},
	}
}

// Controllers is the table of the controllers of the controller manager, in the order in which
// an object passes through them.
func Controllers() []Controller {
	return []Controller{
		{Name: "cluster", Help: "manages the objects that the control plane keeps for a member cluster", Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, cluster.DefaultOptions()
			o.Workers, o.OnDeleted, o.Backoff = settings.Workers.Clusters, h.Members.CloseMember, settings.Backoff
			return errors.Join(cluster.Add(h.Manager, o), clustermonitor.Add(h.Manager, settings.Monitor), addTaintEviction(h))
		}},
		{Name: "clusterStatus", Help: "reports health, APIs and resources of push mode clusters", Add: func(h *Host) error {
			return clusterstatus.Add(h.Manager, h.Members, clusterStatusOptions(h))
		}},
		{Name: "unifiedAuth", Help: "grants users access to member clusters through the control plane", Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, unifiedauth.DefaultOptions()
			o.Workers, o.Backoff = settings.Workers.Clusters, settings.Backoff
			return unifiedauth.Add(h.Manager, o)
		}},
		{Name: "", Help: "claims templates for policies and creates their bindings", Add: func(h *Host) error {
			return detector.Add(h.Manager, h.Templates, h.Interpreter, detectorOptions(h))
		}},
		{Name: "", Help: "propagates the dependencies of a workload together with it", Gate: gates.PropagateDeps, Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, dependencies.DefaultOptions()
			o.Workers, o.Backoff, o.Events = settings.Workers.Dependents, settings.Backoff, settings.Events
			o.Propagated = h.propagationFilter()
			return dependencies.Add(h.Manager, h.Templates, h.Interpreter, o)
		}},
		{Name: "namespace", Help: "propagates namespaces to member clusters", Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, namespace.DefaultOptions()
			o.Workers, o.Backoff = settings.Workers.NamespaceClusterPairs, settings.Backoff
			o.SkippedNamespaces, o.AllowedOverrides = h.SkippedNamespaces, h.allowedOverrides()
			return namespace.Add(h.Manager, o)
		}},
		{Name: "binding", Help: "turns bindings into Works", Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, binding.DefaultOptions()
			o.Workers, o.ClusterWorkers, o.Backoff, o.Events = settings.Workers.Bindings, settings.Workers.ClusterBindings, settings.Backoff, settings.Events
			o.InjectState = h.Settings.Gates.Enabled(gates.StatefulFailoverInjection)
			o.Propagated, o.Allowed = h.propagationFilter(), h.allowedOverrides()
			return binding.Add(h.Manager, h.Templates, h.Interpreter, h.Renderings, o)
		}},
		{Name: "execution", Help: "applies Works to push mode clusters", Add: addExecution},
		{Name: "", Help: "permits or holds the deletion of member objects by agents", Add: func(h *Host) error {
			settings := h.Settings.Controllers
			return workdeletion.Add(h.Manager, workdeletion.Options{Workers: settings.Workers.Works, Backoff: settings.Backoff, Judge: h.Judge})
		}},
		{Name: "workStatus", Help: "reflects the status of objects in push mode clusters", Add: addWorkStatus},
		{Name: "bindingStatus", Help: "aggregates status into bindings and templates", Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, bindingstatus.DefaultOptions()
			o.Workers, o.Backoff, o.Events = max(settings.Workers.Bindings, settings.Workers.ClusterBindings), settings.Backoff, settings.Events
			o.StatusBytes = h.statusBytes()
			return bindingstatus.Add(h.Manager, h.Templates, h.Interpreter, h.Renderings, o)
		}},

		{Name: "agentcsrapproving", Help: "approves the certificate requests of agents and creates their RBAC roles", Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, agentcsrapproving.DefaultOptions()
			o.Backoff = settings.Backoff
			return agentcsrapproving.Add(h.Manager, o)
		}},
		{Name: "applicationFailover", Help: "evicts workloads that are not healthy", Add: addApplicationFailover},
		{Name: "clustertaintpolicy", Help: "adds and removes taints of clusters by their conditions", Gate: gates.Failover, Add: func(h *Host) error {
			settings, o := h.Settings.Controllers, clustertaintpolicy.DefaultOptions()
			o.Workers, o.Backoff = settings.Workers.Clusters, settings.Backoff
			return clustertaintpolicy.Add(h.Manager, o)
		}},
		{Name: "cronFederatedHorizontalPodAutoscaler", Help: "scales workloads on a schedule"},
		{Name: "deploymentReplicasSyncer", Help: "copies the replicas of member clusters back to the template", OffByDefault: true},
		{Name: "endpointSlice", Help: "imports the endpoints of exported services"},
		{Name: "endpointsliceCollect", Help: "collects endpoints for MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "endpointsliceDispatch", Help: "distributes endpoints of MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "federatedHorizontalPodAutoscaler", Help: "scales workloads by the metrics of all member clusters"},
		{Name: "federatedResourceQuotaEnforcement", Help: "computes the usage of FederatedResourceQuotas", Gate: gates.FederatedQuotaEnforcement},
		{Name: "federatedResourceQuotaStatus", Help: "reports the quotas of member clusters"},
		{Name: "federatedResourceQuotaSync", Help: "propagates quotas to member clusters"},
		{Name: "gracefulEviction", Help: "ends evictions when the replacement is ready", Add: addGracefulEviction},
		{Name: "hpaScaleTargetMarker", Help: "labels the workloads that a HorizontalPodAutoscaler of a member cluster scales", OffByDefault: true},
		{Name: "multiclusterservice", Help: "exposes services across clusters", Gate: gates.MultiClusterService},
		{Name: "remedy", Help: "runs remedies for conditions of clusters"},
		{Name: "serviceExport", Help: "collects endpoints of exported services"},
		{Name: "serviceImport", Help: "creates services for ServiceImports"},
		{Name: "workloadRebalancer", Help: "triggers rescheduling of workloads"},
	}
}

func clusterStatusOptions(h *Host) clusterstatus.Options {
	settings, o := h.Settings.Controllers, clusterstatus.DefaultOptions()
	o.Period, o.Thresholds, o.Inventory, o.Mode, o.ClusterName = settings.StatusPeriod, settings.Thresholds, settings.Inventory, h.Settings.SyncMode, h.Settings.OnlyCluster
	o.InventoryTimeout, o.Models = settings.MemberCacheSyncTimeout, h.Settings.Gates.Enabled(gates.CustomizedClusterResourceModeling)
	return o
}

func addExecution(h *Host) error {
	settings, o := h.Settings.Controllers, execution.DefaultOptions()
	o.Workers, o.Backoff, o.Mode, o.Events, o.Judge = settings.Workers.Works, settings.MemberBackoff, h.Settings.SyncMode, settings.Events, h.Judge
	o.Epoch = h.Epoch.Epoch
	return execution.Add(h.Manager, h.Members, h.Interpreter, h.WorkReports, o)
}

func addWorkStatus(h *Host) error {
	settings, o := h.Settings.Controllers, workstatus.DefaultOptions()
	o.Workers, o.Backoff, o.Mode, o.Events = settings.Workers.Works, settings.MemberBackoff, h.Settings.SyncMode, settings.Events
	o.StatusBytes = h.statusBytes()
	return workstatus.Add(h.Manager, h.Members, h.Interpreter, h.WorkReports, o)
}

func detectorOptions(h *Host) detector.Options {
	settings, set, o := h.Settings.Controllers, h.Settings.Gates, detector.DefaultOptions()
	o.Workers, o.PolicyWorkers, o.ClusterPolicyWorkers = settings.Workers.Templates, settings.Workers.Policies, settings.Workers.ClusterPolicies
	o.Backoff, o.RetryRate, o.RetryBurst, o.Events = settings.Backoff, settings.RetryRate, settings.RetryBurst, settings.Events
	o.Propagated, o.SetClaimLookup = h.propagationFilter(), h.offerClaimant
	o.PriorityQueue = set.Enabled(gates.ControllerPriorityQueue)
	o.Preemption = set.Enabled(gates.PropagationPolicyPreemption)
	o.MultiplePodTemplates = set.Enabled(gates.MultiplePodTemplatesScheduling)
	o.WorkloadAffinity = set.Enabled(gates.WorkloadAffinity)
	o.PriorityScheduling = set.Enabled(gates.PriorityBasedScheduling)
	o.ResourceQuotaEstimate = set.Enabled(gates.ResourceQuotaEstimate)
	return o
}

func addScheduler(h *Host) error {
	set, o := h.Settings.Gates, h.Settings.Scheduler
	o.Features.MultiplePodTemplates = set.Enabled(gates.MultiplePodTemplatesScheduling)
	o.Features.WorkloadAffinity = set.Enabled(gates.WorkloadAffinity)
	o.PriorityScheduling = set.Enabled(gates.PriorityBasedScheduling)
	general := scheduler.SummaryEstimator{Models: set.Enabled(gates.CustomizedClusterResourceModeling)}
	return scheduler.Add(h.Manager, []scheduler.Estimator{general}, o)
}
