// Package gates answers "which features are switched on in this process?": one
// table of feature gates that every program knows, and sets of values that each
// program makes for itself. There is no global set, so that several programs can
// run in one process with different gates.
package gates

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Set holds the values of the gates of one program. It also knows the gates of
// the logging library, and AllAlpha and AllBeta, which switch all gates of a stage
// that are not named.
type Set struct {
	featuregate.MutableVersionedFeatureGate
}

// New returns a set in which every gate has its default.
func New() *Set {
	set := &Set{featuregate.NewFeatureGate()}
	specs := make(map[featuregate.Feature]featuregate.FeatureSpec, len(table))
	for _, gate := range table {
		specs[gate.Name] = gate.Spec
	}
	// Adding fails for a name that is there twice or too late, which a test rules out.
	if err := set.Add(specs); err != nil {
		panic(fmt.Sprintf("the table of feature gates is wrong: %v", err))
	}
	if err := logsapi.AddFeatureGates(set); err != nil {
		panic(fmt.Sprintf("the table of feature gates has a gate of the logging library: %v", err))
	}
	return set
}

// flagName is the flag that sets gates.
const flagName = "feature-gates"

// AddFlag adds --feature-gates, whose values go into the set. Its help tells what
// each gate switches.
func (s *Set) AddFlag(flags *pflag.FlagSet) {
	flags.Var(value{s}, flagName, s.usage())
}

// value is the set as a flag. Unlike the library's, it prints nothing as its
// default.
type value struct{ set *Set }

func (v value) Set(text string) error { return v.set.Set(text) }
func (value) Type() string            { return "mapStringBool" }

func (v value) String() string { return v.set.Given() }

// Given is what was set, as --feature-gates takes it: the same for another program.
// It is empty for nil and where every gate has its default.
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
