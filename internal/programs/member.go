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

// AgentComponent is the component of a pull mode member. It is not a row of Components, because
// no control plane runs it. An agent therefore does not link the code of the other components.
func AgentComponent() Component {
	return Component{
		Name: Agent, Help: "registers its cluster and applies the Works of the control plane to it",
		RequiredKinds: []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}},
		Add:           func(h *Host) error { return addSelected(h, AgentControllers()) },
	}
}

// AgentControllers is the table of the controllers of an agent. They serve a single member.
func AgentControllers() []Controller {
	return []Controller{
		{Name: "clusterStatus", Help: "reports health, APIs and resources of the cluster, and renews the Lease of the agent", Add: func(h *Host) error {
			lease, o := clusterlease.New(h.Manager.GetClient(), h.Manager.GetAPIReader(), h.Settings.Agent.Lease), clusterStatusOptions(h)
			o.OnHealthy = lease.StartRenewal
			if err := h.Manager.Add(lease); err != nil {
				return err
			}
			return clusterstatus.Add(h.Manager, h.Members, o)
		}},
		{Name: "execution", Help: "applies the Works of the cluster", Add: addExecution},
		{Name: "workStatus", Help: "reflects the status of the objects of these Works", Add: addWorkStatus},
		{Name: "certRotation", Help: "renews the certificate that the agent uses for the control plane", OffByDefault: true, Add: func(h *Host) error {
			return certrotation.Add(h.Manager, h.Settings.Agent.Rotation)
		}},

		{Name: "endpointsliceCollect", Help: "collects endpoints for MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "serviceExport", Help: "collects endpoints of exported services"},
	}
}
