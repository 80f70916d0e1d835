// Package gates defines the feature gates that every program accepts, and stores the values of one
// program. Because there are no global values, several programs with different gates can run in one
// process.
package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Set contains a program's feature gates and their values. It also contains the gates of the logging
// library, and the gates AllAlpha and AllBeta, which set every gate of a stage that is not set by name.
type Set struct {
	featuregate.MutableVersionedFeatureGate
}

// New returns a set in which every gate has its default value.
func New() *Set {
	set := &Set{featuregate.NewFeatureGate()}
	specs := make(map[featuregate.Feature]featuregate.FeatureSpec, len(table))
	for _, gate := range table {
		specs[gate.Name] = gate.Spec
	}
	// Add returns an error for a duplicate name, or after the flags are parsed. Tests ensure that
	// neither happens.
	if err := set.Add(specs); err != nil {
		panic(fmt.Sprintf("the table of feature gates is wrong: %v", err))
	}
	if err := logsapi.AddFeatureGates(set); err != nil {
		panic(fmt.Sprintf("the table of feature gates has a gate of the logging library: %v", err))
	}
	return set
}

// flagName is the name of the flag that sets gates.
const flagName = "feature-gates"

// AddFlag adds --feature-gates, which sets the gates of the set. The help text of the flag
// describes each gate.
func (s *Set) AddFlag(flags *pflag.FlagSet) {
	s.AddFlagAs(flags, flagName)
}

// AddFlagAs adds a flag of another name than --feature-gates, for a program in which
// --feature-gates sets other gates.
func (s *Set) AddFlagAs(flags *pflag.FlagSet, name string) {
	flags.Var(flagValue{s}, name, s.usage())
}

// flagValue is the flag value of a set. Unlike the flag value of the library, it shows no default
// in the help text.
type flagValue struct{ set *Set }

func (f flagValue) Set(text string) error { return f.set.Set(text) }
func (flagValue) Type() string            { return "mapStringBool" }

func (f flagValue) String() string { return f.set.Given() }

// Given returns the gates that were set, in the format of --feature-gates, so that another program
// can get the same values. It returns an empty string if the set is nil, or if no gate was set.
func (s *Set) Given() string {
	if s == nil {
		return ""
	}
	var given []string
	for name := range s.GetAll() {
		if s.ExplicitlySet(name) {
			given = append(given, fmt.Sprintf("%s=%t", name, s.Enabled(name)))
		}
	}
	slices.Sort(given)
	return strings.Join(given, ",")
}

func (s *Set) usage() string {
	lines := s.KnownFeatures()
	for i, line := range lines {
		name, _, _ := strings.Cut(line, "=")
		at := slices.IndexFunc(table, func(gate Gate) bool { return string(gate.Name) == name })
		if at >= 0 {
			lines[i] += ": " + table[at].Help
		}
	}
	return "Feature gates, as a list of name=true or name=false:\n" + strings.Join(lines, "\n")
}
