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

// TestCommandsTakeTheFlagsThatScriptsUse compares usage, names, shorthands, types
// and defaults of commands with those that users know, all of them and no others
// but those marked as ours.
func TestCommandsTakeTheFlagsThatScriptsUse(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := New(&command.Program{Name: Karmadactl, IOStreams: streams})
	promised := promises(t)
	for _, path := range slices.Sorted(maps.Keys(promised)) {
		t.Run(path, func(t *testing.T) {
			cmd := find(t, root, strings.Fields(path)...)
			if diff := cmp.Diff(promised[path], interfaceOf(cmd)); diff != "" {
				t.Errorf("(-promised +got):\n%s", diff)
			}
		})
	}
}

// promises reads, for the path of each command, its usage and its flags.
func promises(t *testing.T) map[string][]string {
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

// interfaceOf is the usage of a command and its flags, as promises are written.
func interfaceOf(cmd *cobra.Command) []string {
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
		// Help shows the size of no number.
		kind = strings.TrimSuffix(kind, "64")
		lines = append(lines, strings.Join([]string{flag.Name, shorthand, kind, value}, " "))
	})
	slices.Sort(lines)
	return lines
}
