package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/domain/spelling"
)

// ValidateCommand returns an error with similar commands if the arguments name a command that does not exist. This includes
// requests for its help, for which cobra would show the help of the parent command. ValidateCommand sets no flags.
func ValidateCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		return nil
	}
	if words := positionalArgs(root, args); len(words) > 0 && words[0] == "help" {
		args = words[1:]
	}
	parent, rest, _ := root.Find(args)
	words := positionalArgs(parent, rest)
	if !parent.HasSubCommands() || len(words) == 0 {
		return nil
	}
	return unknownCommandError(parent, words[0])
}

func unknownCommandError(parent *cobra.Command, typed string) error {
	err := fmt.Errorf("unknown command %q for %q", typed, parent.CommandPath())
	var names []string
	for _, cmd := range parent.Commands() {
		if !cmd.IsAvailableCommand() {
			continue
		}
		names = append(names, cmd.Name())
		if slices.Contains(cmd.SuggestFor, typed) {
			return fmt.Errorf("%w; did you mean %s?%s", err, cmd.Name(), helpHint(parent))
		}
	}
	if similar := similarNames(typed, names); len(similar) > 0 {
		return fmt.Errorf("%w; did you mean %s?%s", err, strings.Join(similar, " or "), helpHint(parent))
	}
	return fmt.Errorf("%w%s", err, helpHint(parent))
}

func helpHint(parent *cobra.Command) string {
	return fmt.Sprintf("\nSee '%s --help' for the available commands.", parent.CommandPath())
}

// positionalArgs returns the arguments of cmd without flags and their values.
func positionalArgs(cmd *cobra.Command, args []string) []string {
	cmd.InitDefaultHelpFlag()
	// Adds the flags of the parents.
	cmd.InheritedFlags()
	flags := cmd.Flags()
	var words []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, long := strings.CutPrefix(arg, "--")
		switch {
		case arg == "--":
			return append(words, args[i+1:]...)
		case long && strings.Contains(name, "="):
		case long:
			if flag := flags.Lookup(name); flag == nil || flag.NoOptDefVal == "" {
				i++
			}
		case len(arg) > 1 && arg[0] == '-':
			flag := flags.ShorthandLookup(arg[1:2])
			if len(arg) == 2 && (flag == nil || flag.NoOptDefVal == "") {
				i++
			}
		default:
			words = append(words, arg)
		}
	}
	return words
}

// maxSuggestions limits how many names an error suggests.
const maxSuggestions = 3

// minPrefix is the minimum length of a prefix that matches names.
const minPrefix = 2

// similarNames returns at most maxSuggestions names that the user may have meant by typed, the most similar ones first: names
// that start with typed, and names that differ from typed in at most a third of its characters, and at least one. Two swapped
// neighbors count as one difference. Equally similar names are in alphabetical order.
func similarNames(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	limit := max(1, len(typed)/3)
	distances := map[string]int{}
	for _, name := range names {
		switch distance := spelling.Distance(typed, name); {
		case len(typed) >= minPrefix && strings.HasPrefix(name, typed):
			distances[name] = 0
		case distance <= limit && distance < len(typed):
			distances[name] = distance
		}
	}
	var found []string
	for name := range distances {
		found = append(found, name)
	}
	slices.SortFunc(found, func(a, b string) int {
		if distances[a] != distances[b] {
			return distances[a] - distances[b]
		}
		return strings.Compare(a, b)
	})
	return found[:min(len(found), maxSuggestions)]
}
