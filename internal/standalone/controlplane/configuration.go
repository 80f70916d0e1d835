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

// Configuration is what the components in this process are told, by the flags of
// the programs that they are elsewhere.
type Configuration struct {
	controllers *controllermanager.Options
	scheduler   *scheduling.Options
	admission   *webhook.Options

	sets map[string]*pflag.FlagSet
}

// Configurable are the components that Configure knows.
func Configurable() []string {
	return []string{programs.ControllerManager, programs.Scheduler, webhook.Name}
}

// Configure reads flags of components, each COMPONENT.FLAG=VALUE, or COMPONENT.FLAG
// for one that needs no value. Flags about connections, election and the servers of
// a program are unknown: the process has one of each. A nil set of gates stands for
// the defaults.
func Configure(set *gates.Set, extra []string) (*Configuration, error) {
	if set == nil {
		set = gates.New()
	}
	c := &Configuration{
		controllers: controllermanager.Default(set), scheduler: scheduling.Default(set), admission: webhook.NewOptions(set),
		sets: map[string]*pflag.FlagSet{},
	}
	for name, add := range map[string]func(*pflag.FlagSet){
		programs.ControllerManager: c.controllers.AddSettings, programs.Scheduler: c.scheduler.AddSettings, webhook.Name: c.admission.AddSettings,
	} {
		c.sets[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
		add(c.sets[name])
	}
	var errs []error
	for _, entry := range extra {
		errs = append(errs, c.take(entry))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, errors.Join(c.controllers.Validate(), c.scheduler.Validate(), c.admission.Validate())
}

// take reads one COMPONENT.FLAG=VALUE.
func (c *Configuration) take(entry string) error {
	name, flag, _ := strings.Cut(entry, ".")
	set, known := c.sets[name]
	if !known || flag == "" {
		return fmt.Errorf("%q: must be COMPONENT.FLAG=VALUE with a component of %s", entry, strings.Join(Configurable(), ", "))
	}
	if err := set.Parse([]string{"--" + flag}); err != nil {
		return fmt.Errorf("%q: %w; %s --help tells its flags, of which those about connections, election and ports are not for here", entry, err, name)
	}
	return nil
}

// host is what the process runs its components with.
func (c *Configuration) host() (programs.HostOptions, error) {
	of, err := c.controllers.HostOptions()
	if err != nil {
		return programs.HostOptions{}, err
	}
	settings := *of.Settings
	settings.Scheduler = c.scheduler.HostOptions().Settings.Scheduler
	return programs.HostOptions{
		Resync: of.Resync, MemberThrottle: of.MemberThrottle, SkippedNamespaces: of.SkippedNamespaces, Settings: &settings,
	}, nil
}

// tellIneffective says once in the log which flags were given for nothing.
func (c *Configuration) tellIneffective(ctx context.Context, components []string) {
	if slices.Contains(components, programs.ControllerManager) {
		c.controllers.LogIneffectiveFlags(ctx)
	}
	if slices.Contains(components, programs.Scheduler) {
		c.scheduler.LogIneffectiveFlags(ctx)
	}
}
