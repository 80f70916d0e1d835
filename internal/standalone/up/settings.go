package up

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/standalone"
)

// Flags of `karmada up` whose values are stored for later starts.
const (
	componentsFlag  = "components"
	gatesFlag       = "feature-gates"
	extraConfigFlag = "extra-config"
	bindAddressFlag = "bind-address"
	auditLogFlag    = "audit-log"
	failoverFlag    = "failover"
)

// storedSettings are the flags of the last start. The next start uses them unless it sets its own. A
// field that is zero means the flag's default.
type storedSettings struct {
	// Components is the value of --components. Nil means all components.
	Components     *string  `json:"components,omitempty"`
	FeatureGates   string   `json:"featureGates,omitempty"`
	ExtraConfig    []string `json:"extraConfig,omitempty"`
	BindAddress    string   `json:"bindAddress,omitempty"`
	AuditLog       string   `json:"auditLog,omitempty"`
	MemberPrograms *bool    `json:"memberPrograms,omitempty"`
	NoFailover     bool     `json:"noFailover,omitempty"`
}

// allComponents is the default of --components.
var allComponents = []string{"*"}

// settings returns the settings to store.
func (o *Options) settings() storedSettings {
	s := storedSettings{
		FeatureGates: o.Gates.Given(), ExtraConfig: o.ExtraConfig, BindAddress: o.BindAddress,
		AuditLog: o.AuditLog, MemberPrograms: o.MemberPrograms, NoFailover: !o.Failover,
	}
	if !slices.Equal(o.Components, allComponents) {
		selection := strings.Join(o.Components, ",")
		s.Components = &selection
	}
	if s.BindAddress == standalone.Loopback {
		s.BindAddress = ""
	}
	return s
}

// restoreSettings sets the options whose flags are not set to the settings of the last start.
func (o *Options) restoreSettings(stored storedSettings, isSet func(flag string) bool) error {
	if !isSet(componentsFlag) && stored.Components != nil {
		o.Components = splitComponents(*stored.Components)
	}
	if !isSet(gatesFlag) && stored.FeatureGates != "" {
		if err := o.Gates.Set(stored.FeatureGates); err != nil {
			return NewUsageError(fmt.Errorf("--%s=%s, a setting of the last start: %w: set the flag, an empty value is the default", gatesFlag,
				stored.FeatureGates, err))
		}
	}
	if !isSet(extraConfigFlag) {
		o.ExtraConfig = stored.ExtraConfig
	}
	// An empty value removes the flags of the last start.
	o.ExtraConfig = slices.DeleteFunc(slices.Clone(o.ExtraConfig), func(entry string) bool { return entry == "" })
	if !isSet(bindAddressFlag) {
		o.BindAddress = cmp.Or(stored.BindAddress, o.BindAddress)
	}
	if !isSet(auditLogFlag) {
		o.AuditLog = stored.AuditLog
	}
	if !isSet(memberProgramsFlag) {
		o.MemberPrograms = stored.MemberPrograms
	}
	if !isSet(failoverFlag) {
		o.Failover = !stored.NoFailover
	}
	return nil
}

// splitComponents parses a value of --components.
func splitComponents(value string) []string {
	return slices.DeleteFunc(strings.Split(value, ","), func(name string) bool { return name == "" })
}

// flags returns the settings that differ from their defaults, in the form of flags of `karmada up`. It
// omits the flags for which isSet returns true.
func (s storedSettings) flags(isSet func(flag string) bool) []string {
	var flags []string
	add := func(name, value string) {
		if value != "" && !isSet(name) {
			flags = append(flags, "--"+name+"="+console.ShellWord(value))
		}
	}
	if s.Components != nil && !isSet(componentsFlag) {
		flags = append(flags, "--"+componentsFlag+"="+console.ShellWord(*s.Components))
	}
	add(gatesFlag, s.FeatureGates)
	for _, entry := range s.ExtraConfig {
		add(extraConfigFlag, entry)
	}
	add(bindAddressFlag, s.BindAddress)
	add(auditLogFlag, s.AuditLog)
	if s.MemberPrograms != nil {
		add(memberProgramsFlag, strconv.FormatBool(*s.MemberPrograms))
	}
	if s.NoFailover {
		add(failoverFlag, "false")
	}
	return flags
}

// excludedComponents returns the Karmada components that the control plane's process does not run.
func (s storedSettings) excludedComponents() []string {
	if s.Components == nil {
		return nil
	}
	_, excluded := Options{Components: splitComponents(*s.Components)}.selectComponents()
	return excluded
}

// hostedComponents returns the Karmada components that the control plane's process runs.
func (s storedSettings) hostedComponents() []string {
	excluded := s.excludedComponents()
	return slices.DeleteFunc(components.SelectableNames(), func(name string) bool { return slices.Contains(excluded, name) })
}

// failoverConfig returns the component flags that --failover sets. It also enables the feature gate,
// unless --feature-gates sets it.
func (o *Options) failoverConfig() []string {
	if !o.Failover {
		return nil
	}
	if !o.Gates.ExplicitlySet(gates.Failover) {
		// Ignore the error, because setting an existing gate does not fail.
		_ = o.Gates.SetFromMap(map[string]bool{string(gates.Failover): true})
	}
	if !o.Gates.Enabled(gates.Failover) {
		return nil
	}
	return []string{
		programs.ControllerManager + ".enable-no-execute-taint-eviction=true",
		programs.Webhook + ".allow-no-execute-taint-policy=true",
	}
}
