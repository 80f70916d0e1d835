package programs

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/controllers/certrotation"
	"karmada.io/karmada/internal/controllers/clusterlease"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/programs/gates"
)

// AgentComponent is the component of a pull mode member. It is no row of
// Components: no control plane runs it, and a process that runs nothing else need
// not hold what the rows there refer to.
func AgentComponent() Component {
	return Component{
		Name: Agent, Help: "registers its cluster and does there what the control plane wants",
		Needs: []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}},
		Add:   func(h *Host) error { return addSelected(h, AgentControllers()) },
	}
}

// AgentControllers is the table of control loops of an agent: those that serve
// members, for one of them.
func AgentControllers() []Controller {
	return []Controller{
		{Name: "clusterStatus", Help: "reports health, APIs and resources of the cluster, and that its agent lives", Add: func(h *Host) error {
			lease, o := clusterlease.New(h.Manager.GetClient(), h.Manager.GetAPIReader(), h.Settings.Agent.Lease), clusterStatusOptions(h)
			o.OnHealthy = lease.Begin
			if err := h.Manager.Add(lease); err != nil {
				return err
			}
			return clusterstatus.Add(h.Manager, h.Members, o)
		}},
		{Name: "execution", Help: "applies the Works of the cluster", Add: addExecution},
		{Name: "workStatus", Help: "reflects the status of their objects", Add: addWorkStatus},
		{Name: "certRotation", Help: "renews the certificate that the agent shows to the control plane", Off: true, Add: func(h *Host) error {
			return certrotation.Add(h.Manager, h.Settings.Agent.Rotation)
		}},

		{Name: "endpointsliceCollect", Help: "collects endpoints for MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "serviceExport", Help: "collects endpoints of exported services"},
	}
}
