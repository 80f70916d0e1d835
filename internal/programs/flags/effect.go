package flags

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/gates"
)

// Given returns those of the flags that the user gave, as the user writes them.
func Given(flags *pflag.FlagSet, names ...string) []string {
	var given []string
	for _, name := range names {
		if flags.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// GivenGates returns those of the gates that the user switched away from their
// defaults.
func GivenGates(set *gates.Set, names ...featuregate.Feature) []string {
	var given []string
	defaults := gates.New()
	for _, name := range names {
		switch on := set.Enabled(name); {
		case !set.ExplicitlySet(name) || on == defaults.Enabled(name):
		case on:
			given = append(given, "--feature-gates="+string(name)+"=true")
		default:
			given = append(given, "--feature-gates="+string(name)+"=false")
		}
	}
	return given
}

// TellIneffective logs which flags the user gave for nothing, if there are any.
func TellIneffective(ctx context.Context, program string, given []string) {
	if len(given) > 0 {
		klog.FromContext(ctx).Info("Flags without effect in this version", "program", program, "flags", given)
	}
}
