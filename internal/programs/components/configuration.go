package components

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
)

// Configuration contains the components with the options that they have in this process. The flags
// of the separate programs set these options.
type Configuration struct {
	gates      *gates.Set
	components []programs.Component
	flagSets   map[string]*pflag.FlagSet
}

// ConfigurableNames returns the names of the components that Configure accepts.
func ConfigurableNames() []string {
	var names []string
	for _, component := range All(gates.New()) {
		if flags := sharedFlags(&component); flags.HasFlags() {
			names = append(names, component.Name)
		}
	}
	return names
}

// sharedFlags returns the flags that a component has in a process that also runs other components.
func sharedFlags(component *programs.Component) *pflag.FlagSet {
	flags := pflag.NewFlagSet(component.Name, pflag.ContinueOnError)
	if component.Options != nil {
		component.Options.AddFlags(flags)
	}
	return flags
}

// Configure parses flags of components. A flag has the form COMPONENT.FLAG=VALUE, or
// COMPONENT.FLAG without a value. Flags for connections, leader election and the servers of a
// program are rejected, because all components of the process share them. If set is nil, the
// feature gates have their defaults.
func Configure(set *gates.Set, flags []string) (*Configuration, error) {
	return ConfigureWithDefaults(set, nil, flags)
}

// ConfigureWithDefaults does the same as Configure. Before the flags, it parses defaults in the same
// form, which apply to the flags that the user does not give.
func ConfigureWithDefaults(set *gates.Set, defaults, flags []string) (*Configuration, error) {
	if set == nil {
		set = gates.New()
	}
	c := &Configuration{gates: set, components: All(set), flagSets: map[string]*pflag.FlagSet{}}
	for i := range c.components {
		if flags := sharedFlags(&c.components[i]); flags.HasFlags() {
			c.flagSets[flags.Name()] = flags
		}
	}
	var errs []error
	for _, entry := range defaults {
		errs = append(errs, c.parseFlag(entry))
	}
	for _, flags := range c.flagSets {
		flags.VisitAll(func(flag *pflag.Flag) { flag.Changed = false })
	}
	for _, entry := range flags {
		errs = append(errs, c.parseFlag(entry))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range c.components {
		if options := c.components[i].Options; options != nil {
			errs = append(errs, options.Validate())
		}
	}
	return c, errors.Join(errs...)
}

// parseFlag parses one flag of the form COMPONENT.FLAG=VALUE.
func (c *Configuration) parseFlag(entry string) error {
	name, flag, _ := strings.Cut(entry, ".")
	set, known := c.flagSets[name]
	if !known || flag == "" {
		return fmt.Errorf("%q: must be COMPONENT.FLAG=VALUE, where COMPONENT is one of %s", entry, strings.Join(ConfigurableNames(), ", "))
	}
	if err := set.Parse([]string{"--" + flag}); err != nil {
		return fmt.Errorf("%q: %w; %s --help lists the flags; those of connections, leader election and ports are not available here", entry, err,
			name)
	}
	return nil
}

// Hosted returns the named components that a host runs.
func (c *Configuration) Hosted(names []string) []programs.Component {
	return slices.DeleteFunc(Hosted(c.components), func(component programs.Component) bool {
		return !slices.Contains(names, component.Name)
	})
}

// Servers returns the components with a server, in the order in which they start, without the
// optional ones that are not named.
func (c *Configuration) Servers(names []string) []programs.Component {
	return slices.DeleteFunc(Servers(c.components), func(component programs.Component) bool {
		return component.Server.IsOptional && !slices.Contains(names, component.Name)
	})
}

// HostOptions returns the options with which the process runs the components.
func (c *Configuration) HostOptions() programs.HostOptions {
	o := programs.HostOptions{Gates: c.gates}
	for i := range c.components {
		if configure := c.components[i].ConfigureHost; configure != nil {
			configure(&o)
		}
	}
	return o
}

// admissionRules is implemented by options of components that influence the admission rules.
type admissionRules interface{ Configure(*admission.Reviewer) }

// admissionServer is implemented by options of components with a server that runs admission.
type admissionServer interface{ SetReviewer(admission.Reviewer) }

// ConfigureAdmission sets the admission rules that depend on the options of components.
func (c *Configuration) ConfigureAdmission(reviewer *admission.Reviewer) {
	for i := range c.components {
		if rules, ok := c.components[i].Options.(admissionRules); ok {
			rules.Configure(reviewer)
		}
	}
}

// SetReviewer passes the admission rules to the servers that run admission plugins.
func (c *Configuration) SetReviewer(reviewer func() admission.Reviewer) {
	for i := range c.components {
		if server, ok := c.components[i].Options.(admissionServer); ok {
			server.SetReviewer(reviewer())
		}
	}
}

// LogIneffectiveFlags logs the flags of the named components that the user gave and that have no
// effect.
func (c *Configuration) LogIneffectiveFlags(ctx context.Context, names []string) {
	for _, component := range c.Hosted(names) {
		component.LogIneffectiveFlags(ctx)
	}
}
