package programs

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/programs/gates"
)

// interpreterOptions returns the options of the interpreter that the components of a process share.
func interpreterOptions(set *gates.Set, karmada client.Reader) interpreters.Options {
	return interpreters.Options{ResourceQuotaEstimate: set.Enabled(gates.ResourceQuotaEstimate), Services: interpreters.ServicesOf(karmada)}
}

// watchRules adds the watch of the configuration of the interpreter, unless another component of
// the host added it.
func (h *Host) watchRules() error {
	if h.rules == nil {
		return nil
	}
	rules := h.rules
	h.rules = nil
	return h.Manager.Add(interpreters.NewWatcher(rules, h.Manager.GetCache()))
}

func (c *Component) allRequiredKinds() []client.Object {
	if !c.Interprets {
		return c.RequiredKinds
	}
	return slices.Concat(c.RequiredKinds, interpreters.ConfigurationKinds())
}
