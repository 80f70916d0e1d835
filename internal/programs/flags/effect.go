package flags

import (
	"context"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/gates"
)

// GivenFlags returns the flags among the named flags that the user set, with their leading dashes.
func GivenFlags(flags *pflag.FlagSet, names ...string) []string {
	var given []string
	for _, name := range names {
		if flags.Changed(name) {
			given = append(given, "--"+name)
		}
	}
	return given
}

// withoutEffect is the annotation of a flag that is accepted and validated, but not used.
const withoutEffect = "without-effect"

// MarkWithoutEffect marks flags of the set as flags that are accepted and validated, but not used.
func MarkWithoutEffect(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := flags.Lookup(name)
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[withoutEffect] = []string{}
	}
}

// HasEffect reports whether a flag changes the behavior of the program, at least in some
// configurations. It returns false for a flag that MarkWithoutEffect marked.
func HasEffect(flag *pflag.Flag) bool {
	_, marked := flag.Annotations[withoutEffect]
	return !marked
}

// GivenWithoutEffect returns the flags without effect that the user set, sorted by name, with
// their leading dashes.
func GivenWithoutEffect(flags *pflag.FlagSet) []string {
	var given []string
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && !HasEffect(flag) {
			given = append(given, "--"+flag.Name)
		}
	})
	return given
}

// GivenGates returns the gates among the named gates that the user changed from their defaults.
// The result has the format of flags.
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

// LogIneffective logs the flags that the user set and that have no effect. It logs nothing if
// there are none.
func LogIneffective(ctx context.Context, program string, given []string) {
	if len(given) > 0 {
		klog.FromContext(ctx).Info("Flags without effect in this version", "program", program, "flags", given)
	}
}
