package simulate

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/simulation"
)

// The feature gates on which a simulation depends.
const (
	gateFailover             = "Failover"
	gatePreemption           = "PropagationPolicyPreemption"
	gateModels               = "CustomizedClusterResourceModeling"
	gateMultiplePodTemplates = "MultiplePodTemplatesScheduling"
	gateWorkloadAffinity     = "WorkloadAffinity"
	gateOvercommitProtection = "SchedulingOvercommitProtection"
)

// defaultGates returns the gates with their defaults.
func defaultGates() map[string]bool {
	return map[string]bool{
		gateFailover: false, gatePreemption: false, gateModels: true,
		gateMultiplePodTemplates: false, gateWorkloadAffinity: false, gateOvercommitProtection: false,
	}
}

// settingFlags are the flags for settings of the components, which cannot be read from the control
// plane.
type settingFlags struct {
	gatesText     string
	gates         map[string]bool
	schedulerName string
}

func (s *settingFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.gatesText, "feature-gates", "", "feature gates of the control plane that differ from their defaults, such as Failover=true")
	flags.StringVar(&s.schedulerName, "scheduler-name", policyv1alpha1.DefaultSchedulerName, "name of the scheduler that is simulated")
}

// parse parses the gates. It returns a usage error for a gate that a simulation does not know.
func (s *settingFlags) parse() error {
	known := slices.Sorted(maps.Keys(defaultGates()))
	s.gates = map[string]bool{}
	for text := range strings.SplitSeq(s.gatesText, ",") {
		if text == "" {
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		isOn, err := strconv.ParseBool(value)
		switch {
		case !slices.Contains(known, name):
			return command.NewUsageError("--feature-gates: a simulation does not depend on %q: set %s", name, strings.Join(known, ", "))
		case err != nil:
			return command.NewUsageError("--feature-gates %q: write %s=true or %s=false", text, name, name)
		}
		s.gates[name] = isOn
	}
	return nil
}

// resolve returns the settings of the components. A gate that no flag sets counts as enabled if a
// binding has a field that only a component with this gate sets.
func (s *settingFlags) resolve(bindings []binding.Object) simulation.Settings {
	enabled := defaultGates()
	for _, each := range bindings {
		enabled[gateMultiplePodTemplates] = enabled[gateMultiplePodTemplates] || len(each.BindingSpec().Components) > 0
		enabled[gateWorkloadAffinity] = enabled[gateWorkloadAffinity] || each.BindingSpec().WorkloadAffinityGroups != nil
	}
	maps.Copy(enabled, s.gates)
	return simulation.Settings{
		SchedulerName: s.schedulerName, Plugins: placement.Plugins{"*"},
		Features:  placement.Features{MultiplePodTemplates: enabled[gateMultiplePodTemplates], WorkloadAffinity: enabled[gateWorkloadAffinity]},
		Evictions: enabled[gateFailover], Preemption: enabled[gatePreemption],
		Models: enabled[gateModels], OvercommitProtection: enabled[gateOvercommitProtection],
	}
}

// assumptions returns the assumptions on which the result depends, as sentences for the user.
func (s *settingFlags) assumptions(in simulation.Input) []string {
	assumed := []string{"capacity is that of the status of the Clusters: this command has no certificate for accurate estimators"}
	changed := in.Changes.Apply(in.Clusters, in.Now)
	switch {
	case !slices.ContainsFunc(changed, failover.HasEvictingTaint):
	case in.Settings.Evictions:
		assumed = append(assumed, "NoExecute taints evict workloads: the controller manager has --enable-no-execute-taint-eviction, and the purge mode Gracefully where the policy sets none")
	default:
		assumed = append(assumed, "NoExecute taints evict nothing, which is the default: set --feature-gates Failover=true if the control plane evicts")
	}
	return assumed
}
