package flags

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/gates"
)

// GivenFlags returns which of the named flags the user gave, with their leading dashes.
func GivenFlags(flags *pflag.FlagSet, names ...string) []string {
	var given []string
	for _, name := range names {
		if flags.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// GivenGates returns which of the named gates the user changed from their defaults, as flags.
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

// LogIneffective logs the given flags that have no effect, if there are any.
func LogIneffective(ctx context.Context, program string, given []string) {
	if len(given) > 0 {
		klog.FromContext(ctx).Info("Flags without effect in this version", "program", program, "flags", given)
	}
}
