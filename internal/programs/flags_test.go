package programs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/scheduling"
)

// TestFlagsMatchUpstream compares names, types and defaults of all flags of a program with
// those of existing command lines. testdata/flags has one file for each program, and
// logging.txt for the flags of every program.
func TestFlagsMatchUpstream(t *testing.T) {
	for _, program := range []command.Program{controllermanager.Program(), scheduling.Program(), agent.Program()} {
		t.Run(program.Name, func(t *testing.T) {
			want := readUpstreamFlags(t, program.Name, "logging")
			got := map[string]string{}
			command.New(program).Flags().VisitAll(func(flag *pflag.Flag) {
				got[flag.Name] = flagType(flag) + " " + flagDefault(flag)
				if strings.HasSuffix(want[flag.Name], " -") {
					got[flag.Name] = flagType(flag) + " -"
				}
				if flag.Usage == "" {
					t.Errorf("--%s has no help", flag.Name)
				}
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func readUpstreamFlags(t *testing.T, names ...string) map[string]string {
	t.Helper()
	flags := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile("testdata/flags/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			flag, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			flags[flag] = rest
		}
	}
	return flags
}

// flagType returns the type as help shows it.
func flagType(flag *pflag.Flag) string {
	switch kind := flag.Value.Type(); kind {
	case "uint64":
		return "uint"
	case "float64":
		return "float"
	default:
		return kind
	}
}

func flagDefault(flag *pflag.Flag) string {
	switch value := flag.DefValue; {
	case value == "":
		return `""`
	case flag.Value.Type() == "stringSlice":
		return strings.Trim(value, "[]")
	default:
		return value
	}
}

// TestProgramsAreComponents requires that both tables have the same names.
func TestProgramsAreComponents(t *testing.T) {
	want := []string{controllermanager.Program().Name, scheduling.Program().Name}
	if diff := cmp.Diff(want, programs.ComponentNames()); diff != "" {
		t.Errorf("components (-programs +table):\n%s", diff)
	}
	if want, got := agent.Program().Name, programs.AgentComponent().Name; want != got {
		t.Errorf("the component of members is %s, its program %s", got, want)
	}
}
