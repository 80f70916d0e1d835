package cli

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"karmada.io/karmada/internal/cli/command"
)

// TestCommandInterfaces compares the usage, and the names, shorthands, types and defaults of all
// flags, of each command with those of other releases. Lines with a plus sign are flags that only
// this release has.
func TestCommandInterfaces(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := New(&command.Program{Name: Karmadactl, IOStreams: streams})
	expected := expectedInterfaces(t)
	for _, path := range slices.Sorted(maps.Keys(expected)) {
		t.Run(path, func(t *testing.T) {
			cmd := findCommand(t, root, strings.Fields(path)...)
			if diff := cmp.Diff(expected[path], commandInterface(cmd)); diff != "" {
				t.Errorf("(-expected +got):\n%s", diff)
			}
		})
	}
}

// expectedInterfaces returns the usage and the flags of each command, by the path of the command.
func expectedInterfaces(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	found, path := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			path = strings.Trim(line, "[]")
		default:
			found[path] = append(found[path], strings.TrimPrefix(line, "+ "))
		}
	}
	for _, lines := range found {
		slices.Sort(lines)
	}
	return found
}

// commandInterface returns the usage of a command and its flags in the format of flags.txt.
func commandInterface(cmd *cobra.Command) []string {
	lines := []string{"use " + strings.TrimSpace(cmd.Use)}
	cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" || flag.Hidden {
			return
		}
		shorthand, value, kind := flag.Shorthand, flag.DefValue, flag.Value.Type()
		if shorthand == "" {
			shorthand = "-"
		}
		if value == "" {
			value = `""`
		}
		// The help text does not show the size of number types.
		kind = strings.TrimSuffix(kind, "64")
		lines = append(lines, strings.Join([]string{flag.Name, shorthand, kind, value}, " "))
	})
	slices.Sort(lines)
	return lines
}
