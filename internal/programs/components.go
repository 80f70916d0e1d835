package programs

import (
	"karmada.io/karmada/internal/controllers/binding"
	"karmada.io/karmada/internal/controllers/bindingstatus"
	"karmada.io/karmada/internal/controllers/cluster"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/namespace"
	"karmada.io/karmada/internal/controllers/unifiedauth"
	"karmada.io/karmada/internal/controllers/workstatus"
	"karmada.io/karmada/internal/scheduler"
)

// Names of the components.
const (
	ControllerManager = "karmada-controller-manager"
	Scheduler         = "karmada-scheduler"
)

// Components is the table of components.
func Components() []Component {
	return []Component{
		{Name: ControllerManager, Help: "turns templates into objects of member clusters and their status back", Add: addControllers},
		{Name: Scheduler, Help: "decides which clusters, and how many replicas in each", Add: addScheduler},
	}
}

// Controller is one control loop of the controller manager.
type Controller struct {
	// Name is its name in the flag --controllers; empty for one that cannot be
	// switched off.
	Name string
	// Help says what it does, in one line.
	Help string
	// Add registers it with a host.
	Add func(*Host) error
}

// Controllers is the table of control loops of the controller manager, in the
// order in which an object meets them.
func Controllers() []Controller {
	return []Controller{
		{Name: "cluster", Help: "keeps what the control plane holds for a member cluster", Add: func(h *Host) error {
			o := cluster.DefaultOptions()
			o.Forget = h.Members.Forget
			return cluster.Add(h.Manager, o)
		}},
		{Name: "clusterStatus", Help: "reports health, APIs and resources of push mode clusters", Add: func(h *Host) error {
			return clusterstatus.Add(h.Manager, h.Members, clusterstatus.DefaultOptions())
		}},
		{Name: "unifiedAuth", Help: "lets users of the control plane go through it to member clusters", Add: func(h *Host) error {
			return unifiedauth.Add(h.Manager, unifiedauth.DefaultOptions())
		}},
		{Name: "", Help: "claims templates for policies and makes their bindings", Add: func(h *Host) error {
			o := detector.DefaultOptions()
			o.SkippedNamespaces = h.SkippedNamespaces
			return detector.Add(h.Manager, h.Rules, o)
		}},
		{Name: "namespace", Help: "sends namespaces to member clusters", Add: func(h *Host) error {
			o := namespace.DefaultOptions()
			o.SkippedNamespaces = h.SkippedNamespaces
			return namespace.Add(h.Manager, o)
		}},
		{Name: "binding", Help: "turns bindings into Works", Add: func(h *Host) error {
			return binding.Add(h.Manager, h.Rules, h.Renderings, binding.DefaultOptions())
		}},
		{Name: "execution", Help: "applies Works to push mode clusters", Add: func(h *Host) error {
			return execution.Add(h.Manager, h.Members, h.Rules, h.Reports, execution.DefaultOptions())
		}},
		{Name: "workStatus", Help: "reflects the status of objects in push mode clusters", Add: func(h *Host) error {
			return workstatus.Add(h.Manager, h.Members, h.Rules, h.Reports, workstatus.DefaultOptions())
		}},
		{Name: "bindingStatus", Help: "aggregates status into bindings and templates", Add: func(h *Host) error {
			return bindingstatus.Add(h.Manager, h.Rules, h.Renderings, bindingstatus.DefaultOptions())
		}},
	}
}

func addControllers(h *Host) error {
	for _, controller := range Controllers() {
		if err := controller.Add(h); err != nil {
			return err
		}
	}
	return nil
}

func addScheduler(h *Host) error {
	return scheduler.Add(h.Manager, []scheduler.Estimator{scheduler.General{Models: true}}, scheduler.DefaultOptions())
}
