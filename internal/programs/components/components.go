// Package components contains the table of all components. It is the only list of components:
// `karmada up`, the programs of cmd, and the tests read it.
package components

import (
	"slices"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/apiservers"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
	"karmada.io/karmada/internal/programs/webhook"
)

// rows is the table of all components, in the order in which messages list them.
var rows = []func(*gates.Set) programs.Component{
	controllermanager.New,
	scheduling.New,
	scheduling.NewDescheduler,
	webhook.New,
	apiservers.NewAggregated,
	apiservers.NewSearch,
	agent.New,
	scheduling.NewEstimator,
}

// All returns all components with their default options, for the feature gates of one process.
func All(set *gates.Set) []programs.Component {
	all := make([]programs.Component, len(rows))
	for i, row := range rows {
		all[i] = row(set)
	}
	return all
}

// Programs returns the programs of all components.
func Programs() []command.Program {
	all := make([]command.Program, len(rows))
	for i, row := range rows {
		all[i] = programs.Program(row)
	}
	return all
}

// HostedNames returns the names of the components that a host runs.
func HostedNames() []string { return names(Hosted(All(gates.New()))) }

// SelectableNames returns the names of the components that a user can exclude from a control plane
// in one process.
func SelectableNames() []string { return names(Selectable(All(gates.New()))) }

// ServerNames returns the names of the components whose server a control plane in one process
// starts.
func ServerNames() []string { return names(Servers(All(gates.New()))) }

// NamesWithFlag returns the names of the components that Configure accepts and that have the given flag.
func NamesWithFlag(flag string) []string {
	withFlag := slices.DeleteFunc(All(gates.New()), func(c programs.Component) bool { return sharedFlags(&c).Lookup(flag) == nil })
	return names(withFlag)
}

// Hosted returns the components that a host runs.
func Hosted(all []programs.Component) []programs.Component {
	return slices.DeleteFunc(slices.Clone(all), func(c programs.Component) bool { return c.Add == nil })
}

// Selectable returns the components that a user can exclude from a control plane in one process.
func Selectable(all []programs.Component) []programs.Component {
	return slices.DeleteFunc(slices.Clone(all), func(c programs.Component) bool {
		return c.Add == nil && (c.Server == nil || !c.Server.IsOptional)
	})
}

// Servers returns the components with a server, in the order in which they start.
func Servers(all []programs.Component) []programs.Component {
	return slices.DeleteFunc(slices.Clone(all), func(c programs.Component) bool { return c.Server == nil })
}

func names(all []programs.Component) []string {
	var names []string
	for i := range all {
		names = append(names, all[i].Name)
	}
	return names
}
