package architecture

import (
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unusedOptions lists fields of options that need no reader or no writer, with the reason.
var unusedOptions = map[string]string{
	"extensionserver.Options.Authenticator": "no program serves Clusters without a kube-apiserver that authenticates",
	"extensionserver.Options.Authorizer":    "no program serves Clusters without a kube-apiserver that authorizes",
	"servers/aggregated.Options.Secrets":    "no program serves Clusters without the Secrets of a kube-apiserver",
}

// TestOptionsReachTheirReader finds options that are declared, but do not reach the code that
// they configure.
//
// A field of options must be read outside of the functions that declare flags, set defaults or
// validate, and it must be set at least once. A feature gate must be read. Flags
// without effect are in programs.IgnoredFlags, and gates without effect are in the rows of controllers
// without Add.
func TestOptionsReachTheirReader(t *testing.T) {
	loaded, err := loadTypes()
	if err != nil {
		t.Fatal(err)
	}
	u := newOptionUses()
	for _, p := range loaded.packages {
		u.addPackage(p)
	}
	// Packages that link Kubernetes are not type-checked. Instead, each name in their files
	// counts as a use of every field with this name in the packages that the file imports.
	for _, s := range readSources(t) {
		if s.isGo() && isWithin(s.path, "internal/standalone", "internal/testenv", "internal/cli") && !strings.HasSuffix(s.path, "_test.go") {
			u.addNames(t, s)
		}
	}
	outdated := maps.Clone(unusedOptions)
	for _, problem := range u.problems() {
		field, _, _ := strings.Cut(problem, ": ")
		if _, isListed := unusedOptions[field]; !isListed {
			t.Errorf("%s\n  rule: an option reaches its reader\n  remedy: pass it on, remove it, or add it to the table of unusedOptions with a reason", problem)
		}
		delete(outdated, field)
	}
	for field := range outdated {
		t.Errorf("%s reaches its reader, or does not exist: remove it from the table of unusedOptions", field)
	}
}

func TestFindUnusedOptions(t *testing.T) {
	loaded, err := loadTypes()
	if err != nil {
		t.Fatal(err)
	}
	const imports = `package example
		import ("time"; "github.com/spf13/pflag"; "k8s.io/component-base/featuregate")
		var _ time.Duration; var _ pflag.FlagSet; var _ featuregate.Feature
		`
	tests := map[string]struct {
		code string
		want []string
	}{
		"a flag that is read": {code: `
			type Options struct { Period time.Duration }
			func (o *Options) AddFlags(set *pflag.FlagSet) { set.DurationVar(&o.Period, "period", o.Period, "") }
			func (o *Options) run() time.Duration { return o.Period }`},
		"a flag that nothing reads": {
			code: `
			type Options struct { Period time.Duration }
			func (o *Options) AddFlags(set *pflag.FlagSet) { set.DurationVar(&o.Period, "period", o.Period, "") }
			func (o *Options) Validate() bool { return o.Period > 0 }`,
			want: []string{"example.Options.Period: nothing reads it"},
		},
		"a flag of a table that nothing reads": {
			code: `
			type Workers struct { Works int }
			func (w *Workers) AddFlags(set *pflag.FlagSet) { for _, row := range w.rows() { set.IntVar(row.count, "works", *row.count, "") } }
			func (w *Workers) rows() []row { return []row{{&w.Works}} }
			type row struct { count *int }
			type Options struct { Workers Workers }
			var used = Options{Workers: Workers{}}.Workers`,
			want: []string{"example.Workers.Works: nothing reads it"},
		},
		"an option that a copy forgets": {
			code: `
			type Options struct { Estimate bool }
			func run(o Options) bool { return o.Estimate }
			var used = run(Options{})`,
			want: []string{"example.Options.Estimate: nothing sets it"},
		},
		"an option of an inner struct that is only set": {
			code: `
			type Options struct { Grace Grace }
			type Grace struct { Period time.Duration }
			func (o *Options) AddFlags(set *pflag.FlagSet) { set.DurationVar(&o.Grace.Period, "period", o.Grace.Period, "") }
			func (o *Options) set() { o.Grace.Period = time.Second }`,
			want: []string{"example.Grace.Period: nothing reads it", "example.Options.Grace: nothing reads it"},
		},
		"a default is no reader": {
			code: `
			type Options struct { Period time.Duration }
			func DefaultOptions() Options { return Options{Period: time.Second} }
			func DefaultPeriod() time.Duration { return DefaultOptions().Period }`,
			want: []string{"example.Options.Period: nothing reads it"},
		},
		"a pointer to an option is a reader": {code: `
			type Options struct { Period time.Duration }
			func (o *Options) AddFlags(set *pflag.FlagSet) { set.DurationVar(&o.Period, "period", o.Period, "") }
			func (o *Options) run() *time.Duration { return &o.Period }`},
		"a gate that is read": {code: `
			const Failover featuregate.Feature = "Failover"
			func run(set featuregate.FeatureGate) bool { return set.Enabled(Failover) }`},
		"a gate that nothing reads": {
			code: `
			const Failover featuregate.Feature = "Failover"
			var names = []featuregate.Feature{Failover}`,
			want: []string{"example.Failover: nothing reads it"},
		},
		"a gate of a controller": {code: `
			const Failover featuregate.Feature = "Failover"
			type controller struct { Gate featuregate.Feature; Add func() }
			var table = []controller{{Gate: Failover, Add: func() {}}}`},
		"a flag without a variable": {
			code: `func AddFlags(set *pflag.FlagSet) { set.Bool("quick", false, "") }`,
			want: []string{"example.AddFlags: a flag has no variable"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := *loaded.checker
			c.checked = map[string]*types.Package{}
			file, err := parser.ParseFile(c.files, "example.go", imports+test.code, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.check(module+"/example", []*ast.File{file})
			if err != nil {
				t.Fatal(err)
			}
			u := newOptionUses()
			u.addPackage(p)
			if diff := cmp.Diff(test.want, u.problems()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}
