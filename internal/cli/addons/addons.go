// Package addons installs, removes and lists addons, the optional components of a control plane.
//
// Addons run in the host cluster. Package rendering renders their objects, and package install applies them.
// Invariant: a command changes only objects that the addon commands installed.
package addons

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/spelling"
	"karmada.io/karmada/internal/install"
)

// metricsAdapter is an addon that exists upstream but not in this version.
const metricsAdapter = "karmada-metrics-adapter"

// all is the argument that selects all addons.
const all = "all"

// addon describes an addon.
type addon struct {
	name string
	// enable installs the addon and returns the number of written objects. It is nil if this version does not
	// have the addon.
	enable  func(context.Context, *session, *enableOptions) (written int, err error)
	disable func(context.Context, *session) error
	// deployment returns the name of the addon's Deployment. It is empty if the flags do not determine it.
	deployment func(*session) string
	// apiServices are the names of the addon's APIServices in the control plane.
	apiServices []string
}

// addons returns all addons, sorted by name.
func addons() []addon {
	named := func(name string) func(*session) string { return func(*session) string { return name } }
	return []addon{
		{name: install.DeschedulerProgram, enable: enableDescheduler, disable: disableDescheduler, deployment: named(install.DeschedulerProgram)},
		{name: metricsAdapter, deployment: named(metricsAdapter),
			apiServices: []string{"v1beta1.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"}},
		{name: install.EstimatorProgram, enable: enableEstimator, disable: disableEstimator, deployment: estimatorDeployment},
		{name: install.SearchProgram, enable: enableSearch, disable: disableSearch, deployment: named(install.SearchProgram),
			apiServices: []string{"v1alpha1." + searchv1alpha1.GroupName}},
	}
}

func names() []string {
	var list []string
	for _, row := range addons() {
		list = append(list, row.name)
	}
	return list
}

// New returns the command "addons".
func New(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "addons",
		Short: "Install and remove optional components of a control plane",
		Long:  "Install, remove and list the optional components of a control plane, which run in the host cluster of the control plane.",
		Example: program.Examples(`
			# List the addons with their state
			{{program}} addons list`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEnable(program), newDisable(program), newList(program))
	return cmd
}

// validateNames validates the arguments of a command. It implements cobra.PositionalArgs.
func (s *session) validateNames(_ *cobra.Command, args []string) error {
	_, err := selectAddons(args, s.cluster, func(string, ...any) {})
	return err
}

// selectAddons returns the addons that the arguments select, sorted by name. It calls skipf for each addon
// that "all" leaves out.
func selectAddons(args []string, cluster string, skipf func(format string, args ...any)) ([]addon, error) {
	if len(args) == 0 {
		return nil, command.NewUsageError("the name of the addon is missing: use %s, or %s", strings.Join(names(), ", "), all)
	}
	isAll := slices.Contains(args, all)
	for _, name := range args {
		if name != all && !slices.Contains(names(), name) {
			return nil, unknownAddonError(name)
		}
	}
	if cluster != "" && !isAll && !slices.Contains(args, install.EstimatorProgram) {
		return nil, command.NewUsageError("--cluster %s: only %s serves one cluster; add it, or omit the flag", cluster, install.EstimatorProgram)
	}
	var selected []addon
	for _, row := range addons() {
		isNamed := slices.Contains(args, row.name)
		switch {
		case !isNamed && !isAll:
		case row.enable == nil && isNamed:
			return nil, fmt.Errorf("this version does not have the addon %s yet: omit it", row.name)
		case row.enable == nil:
			skipf("%s is skipped: this version does not have it yet", row.name)
		case row.name == install.EstimatorProgram && cluster == "" && !isNamed:
			skipf("%s is skipped: it needs --cluster", row.name)
		default:
			selected = append(selected, row)
		}
	}
	return selected, nil
}

func unknownAddonError(name string) error {
	if nearest := spelling.Nearest(name, append(names(), all)); nearest != "" {
		return command.NewUsageError("there is no addon %q: did you mean %s?", name, nearest)
	}
	return command.NewUsageError("there is no addon %q: use %s, or %s", name, strings.Join(names(), ", "), all)
}

// completeAddons completes the names of addons that are not among the arguments yet.
func completeAddons(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	candidates := slices.DeleteFunc(append(names(), all), func(name string) bool { return slices.Contains(args, name) })
	return candidates, cobra.ShellCompDirectiveNoFileComp
}
