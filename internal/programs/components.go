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

// Components is the table of components of a control plane.
func Components() []Component {
	return []Component{
		{
			Name: ControllerManager, Help: "turns templates into objects of member clusters and their status back", Add: addControllers,
			Needs: []client.Object{
				&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{},
				&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{},
				&policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{},
			},
		},
		{
			Name: Scheduler, Help: "decides which clusters, and how many replicas in each", Add: addScheduler,
			Needs: []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{}},
		},
	}
}

// Controllers is the table of control loops of the controller manager, in the
// order in which an object meets them.
func Controllers() []Controller {
	return []Controller{
		{Name: "cluster", Help: "keeps what the control plane holds for a member cluster", Add: func(h *Host) error {
			of, o := h.Settings.Controllers, cluster.DefaultOptions()
			o.Workers, o.Forget, o.Backoff = of.Workers.Clusters, h.Members.Forget, of.Backoff
			return errors.Join(cluster.Add(h.Manager, o), clustermonitor.Add(h.Manager, of.Monitor), addTaintEviction(h))
		}},
		{Name: "clusterStatus", Help: "reports health, APIs and resources of push mode clusters", Add: func(h *Host) error {
			return clusterstatus.Add(h.Manager, h.Members, clusterStatusOptions(h))
		}},
		{Name: "unifiedAuth", Help: "lets users of the control plane go through it to member clusters", Add: func(h *Host) error {
			of, o := h.Settings.Controllers, unifiedauth.DefaultOptions()
			o.Workers, o.Backoff = of.Workers.Clusters, of.Backoff
			return unifiedauth.Add(h.Manager, o)
		}},
		{Name: "", Help: "claims templates for policies and makes their bindings", Add: func(h *Host) error {
			return detector.Add(h.Manager, h.Templates, h.Rules, detectorOptions(h))
		}},
		{Name: "", Help: "sends what a workload refers to along with it", Gate: gates.PropagateDeps, Add: func(h *Host) error {
			of, o := h.Settings.Controllers, dependencies.DefaultOptions()
			o.Workers, o.Backoff, o.Events = of.Workers.Dependents, of.Backoff, of.Events
			o.Propagated = h.propagated()
			return dependencies.Add(h.Manager, h.Templates, h.Rules, o)
		}},
		{Name: "namespace", Help: "sends namespaces to member clusters", Add: func(h *Host) error {
			of, o := h.Settings.Controllers, namespace.DefaultOptions()
			o.Workers, o.Backoff = of.Workers.Pairs, of.Backoff
			o.SkippedNamespaces, o.Allowed = h.SkippedNamespaces, h.allowedOverrides()
			return namespace.Add(h.Manager, o)
		}},
		{Name: "binding", Help: "turns bindings into Works", Add: func(h *Host) error {
			of, o := h.Settings.Controllers, binding.DefaultOptions()
			o.Workers, o.ClusterWorkers, o.Backoff, o.Events = of.Workers.Bindings, of.Workers.ClusterBindings, of.Backoff, of.Events
			o.InjectState = h.Settings.Gates.Enabled(gates.StatefulFailoverInjection)
			o.Propagated, o.Allowed = h.propagated(), h.allowedOverrides()
			return binding.Add(h.Manager, h.Templates, h.Rules, h.Renderings, o)
		}},
		{Name: "execution", Help: "applies Works to push mode clusters", Add: addExecution},
		{Name: "", Help: "decides whether agents may delete the objects of Works", Add: func(h *Host) error {
			of := h.Settings.Controllers
			return workdeletion.Add(h.Manager, workdeletion.Options{Workers: of.Workers.Works, Backoff: of.Backoff, Judge: h.Judge})
		}},
		{Name: "workStatus", Help: "reflects the status of objects in push mode clusters", Add: addWorkStatus},
		{Name: "bindingStatus", Help: "aggregates status into bindings and templates", Add: func(h *Host) error {
			of, o := h.Settings.Controllers, bindingstatus.DefaultOptions()
			o.Workers, o.Backoff, o.Events = max(of.Workers.Bindings, of.Workers.ClusterBindings), of.Backoff, of.Events
			o.StatusBytes = h.statusBytes()
			return bindingstatus.Add(h.Manager, h.Templates, h.Rules, h.Renderings, o)
		}},

		{Name: "agentcsrapproving", Help: "approves certificates of agents and gives them their rights", Add: func(h *Host) error {
			of, o := h.Settings.Controllers, agentcsrapproving.DefaultOptions()
			o.Backoff = of.Backoff
			return agentcsrapproving.Add(h.Manager, o)
		}},
		{Name: "applicationFailover", Help: "evicts workloads that are not healthy", Add: addApplicationFailover},
		{Name: "clustertaintpolicy", Help: "taints clusters by their conditions", Gate: gates.Failover, Add: func(h *Host) error {
			of, o := h.Settings.Controllers, clustertaintpolicy.DefaultOptions()
			o.Workers, o.Backoff = of.Workers.Clusters, of.Backoff
			return clustertaintpolicy.Add(h.Manager, o)
		}},
		{Name: "cronFederatedHorizontalPodAutoscaler", Help: "scales at set times"},
		{Name: "deploymentReplicasSyncer", Help: "takes replicas over from member clusters", Off: true},
		{Name: "endpointSlice", Help: "imports endpoints of exported services"},
		{Name: "endpointsliceCollect", Help: "collects endpoints for MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "endpointsliceDispatch", Help: "sends endpoints of MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "federatedHorizontalPodAutoscaler", Help: "scales by metrics of all member clusters"},
		{Name: "federatedResourceQuotaEnforcement", Help: "sums up what quotas are used for", Gate: gates.FederatedQuotaEnforcement},
		{Name: "federatedResourceQuotaStatus", Help: "reports the quotas of member clusters"},
		{Name: "federatedResourceQuotaSync", Help: "sends quotas to member clusters"},
		{Name: "gracefulEviction", Help: "ends evictions when the replacement is ready", Add: addGracefulEviction},
		{Name: "hpaScaleTargetMarker", Help: "marks what an autoscaler scales in member clusters", Off: true},
		{Name: "multiclusterservice", Help: "offers services over several clusters", Gate: gates.MultiClusterService},
		{Name: "remedy", Help: "acts on conditions of clusters"},
		{Name: "serviceExport", Help: "collects endpoints of exported services"},
		{Name: "serviceImport", Help: "makes services of imports"},
		{Name: "workloadRebalancer", Help: "has workloads scheduled anew"},
	}
}

func clusterStatusOptions(h *Host) clusterstatus.Options {
	of, o := h.Settings.Controllers, clusterstatus.DefaultOptions()
	o.Period, o.Thresholds, o.Inventory, o.Mode, o.Only = of.StatusPeriod, of.Thresholds, of.Inventory, h.Settings.Mode, h.Settings.Only
	o.Settle, o.Models = of.MemberSettle, h.Settings.Gates.Enabled(gates.CustomizedClusterResourceModeling)
	return o
}

func addExecution(h *Host) error {
	of, o := h.Settings.Controllers, execution.DefaultOptions()
	o.Workers, o.Backoff, o.Mode, o.Events, o.Judge = of.Workers.Works, of.MemberBackoff, h.Settings.Mode, of.Events, h.Judge
	o.Epoch = h.Epoch.Epoch
	return execution.Add(h.Manager, h.Members, h.Rules, h.Reports, o)
}

func addWorkStatus(h *Host) error {
	of, o := h.Settings.Controllers, workstatus.DefaultOptions()
	o.Workers, o.Backoff, o.Mode, o.Events = of.Workers.Works, of.MemberBackoff, h.Settings.Mode, of.Events
	o.StatusBytes = h.statusBytes()
	return workstatus.Add(h.Manager, h.Members, h.Rules, h.Reports, o)
}

func detectorOptions(h *Host) detector.Options {
	of, set, o := h.Settings.Controllers, h.Settings.Gates, detector.DefaultOptions()
	o.Workers, o.PolicyWorkers, o.ClusterPolicyWorkers = of.Workers.Templates, of.Workers.Policies, of.Workers.ClusterPolicies
	o.Backoff, o.RetryRate, o.RetryBurst, o.Events = of.Backoff, of.RetryRate, of.RetryBurst, of.Events
	o.Propagated, o.Offer = h.propagated(), h.offerClaims
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
	general := scheduler.General{Models: set.Enabled(gates.CustomizedClusterResourceModeling)}
	return scheduler.Add(h.Manager, []scheduler.Estimator{general}, o)
}
