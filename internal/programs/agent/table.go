package agent

import (
	"karmada.io/karmada/internal/controllers/certrotation"
	"karmada.io/karmada/internal/controllers/clusterlease"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
)

// table returns the controllers of an agent. The controllers serve only the cluster of the agent.
func (o *Options) table() programs.ControllerTable {
	return programs.ControllerTable{
		{Name: "clusterStatus", Help: "reports health, APIs and resources of the cluster, and renews the Lease of the agent",
			Add: o.addClusterStatus},
		{Name: "execution", Help: "applies the Works of the cluster", Add: func(h *programs.Host) error { return o.AddExecution(h, o.works()) }},
		{Name: "workStatus", Help: "reflects the status of the objects of these Works",
			Add: func(h *programs.Host) error { return o.AddWorkStatus(h, o.works()) }},
		{Name: "certRotation", Help: "renews the certificate that the agent uses for the control plane", OffByDefault: true,
			Add: func(h *programs.Host) error {
				return certrotation.Add(h.Manager, o.Rotation)
			}},

		{Name: "endpointsliceCollect", Help: "collects endpoints for MultiClusterServices", Gate: gates.MultiClusterService},
		{Name: "serviceExport", Help: "collects endpoints of exported services"},
	}
}

// Component returns the component that a host of the agent runs.
func (o *Options) Component() programs.Component {
	return programs.Component{
		Name: programs.Agent, RequiredKinds: requiredKinds(), Interprets: true,
		Add: func(h *programs.Host) error { return o.table().AddTo(h, o.Selected) },
	}
}

func (o *Options) works() programs.WorkOptions {
	return programs.WorkOptions{Workers: o.Workers, Mode: o.ClusterStatus.Mode}
}

func (o *Options) addClusterStatus(h *programs.Host) error {
	lease, status := clusterlease.New(h.Manager.GetClient(), h.Manager.GetAPIReader(), o.Lease), o.ClusterStatus
	status.ClusterName, status.OnHealthy = o.Cluster.Name, lease.StartRenewal
	if err := h.Manager.Add(lease); err != nil {
		return err
	}
	return programs.AddClusterStatus(h, status)
}
