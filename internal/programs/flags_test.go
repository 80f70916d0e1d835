package programs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
)

// TestFlagsMatchUpstream compares the names, types and defaults of all flags of a program with
// those of existing command lines. testdata/flags has one file for each program, and the file
// logging.txt for the flags that every program has.
func TestFlagsMatchUpstream(t *testing.T) {
	for _, program := range components.Programs() {
		t.Run(program.Name, func(t *testing.T) {
			want := readUpstreamFlags(t, program.Name, "logging")
			got := map[string]string{}
			command.New(program).Flags().VisitAll(func(flag *pflag.Flag) {
				if _, isWanted := want[flag.Name]; flag.Deprecated != "" && !isWanted {
					return
				}
				got[flag.Name] = strings.TrimSpace(flagType(flag) + " " + flagDefault(flag))
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

// flagType returns the type of a flag as the help text shows it.
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

// TestTableOfComponents requires that each row describes one program, and specifies how it runs.
func TestTableOfComponents(t *testing.T) {
	names := map[string]bool{}
	for _, component := range components.All(gates.New()) {
		if component.Name == "" || names[component.Name] {
			t.Errorf("the name %q is empty or not unique", component.Name)
		}
		names[component.Name] = true
		if component.Help == "" {
			t.Errorf("%s has no help", component.Name)
		}
		if component.NewProgram == nil {
			t.Errorf("%s has no program", component.Name)
		}
		if component.Add != nil && component.Options == nil {
			t.Errorf("%s runs in a host and has no options", component.Name)
		}
	}
}
