package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
	"karmada.io/karmada/internal/programs/webhook"
)

// Configuration holds the options of the components in this process. They are set by the
// flags of the separate programs.
type Configuration struct {
	controllers *controllermanager.Options
	scheduler   *scheduling.Options
	admission   *webhook.Options

	flagSets map[string]*pflag.FlagSet
}

// ConfigurableComponents returns the names of the components that Configure accepts.
func ConfigurableComponents() []string {
	return []string{programs.ControllerManager, programs.Scheduler, webhook.Name}
}

// Configure parses flags of components, each as COMPONENT.FLAG=VALUE, or COMPONENT.FLAG for a
// flag without a value. Flags of connections, leader election and the servers of a program
// are unknown, because the process has one of each. A nil set of gates means the defaults.
func Configure(set *gates.Set, flags []string) (*Configuration, error) {
	if set == nil {
		set = gates.New()
	}
	c := &Configuration{
		controllers: controllermanager.Default(set), scheduler: scheduling.Default(set), admission: webhook.NewOptions(set),
		flagSets: map[string]*pflag.FlagSet{},
	}
	for name, add := range map[string]func(*pflag.FlagSet){
		programs.ControllerManager: c.controllers.AddSettings, programs.Scheduler: c.scheduler.AddSettings, webhook.Name: c.admission.AddSettings,
	} {
		c.flagSets[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
		add(c.flagSets[name])
	}
	var errs []error
	for _, entry := range flags {
		errs = append(errs, c.parseFlag(entry))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, errors.Join(c.controllers.Validate(), c.scheduler.Validate(), c.admission.Validate())
}

// parseFlag parses one COMPONENT.FLAG=VALUE.
func (c *Configuration) parseFlag(entry string) error {
	name, flag, _ := strings.Cut(entry, ".")
	set, known := c.flagSets[name]
	if !known || flag == "" {
		return fmt.Errorf("%q: must be COMPONENT.FLAG=VALUE, where COMPONENT is one of %s", entry, strings.Join(ConfigurableComponents(), ", "))
	}
	if err := set.Parse([]string{"--" + flag}); err != nil {
		return fmt.Errorf("%q: %w; %s --help lists the flags; those of connections, leader election and ports are not available here", entry, err, name)
	}
	return nil
}

// hostOptions returns the options with which the process runs the components.
func (c *Configuration) hostOptions() (programs.HostOptions, error) {
	managerHost, err := c.controllers.HostOptions()
	if err != nil {
		return programs.HostOptions{}, err
	}
	settings := *managerHost.Settings
	settings.Scheduler = c.scheduler.HostOptions().Settings.Scheduler
	return programs.HostOptions{
		Resync: managerHost.Resync, MemberThrottle: managerHost.MemberThrottle, SkippedNamespaces: managerHost.SkippedNamespaces, Settings: &settings,
	}, nil
}

// logIneffectiveFlags logs once which of the given flags have no effect.
func (c *Configuration) logIneffectiveFlags(ctx context.Context, components []string) {
	if slices.Contains(components, programs.ControllerManager) {
		c.controllers.LogIneffectiveFlags(ctx)
	}
	if slices.Contains(components, programs.Scheduler) {
		c.scheduler.LogIneffectiveFlags(ctx)
	}
}
