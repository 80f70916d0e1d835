package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
)

// newHelp returns the command that prints the help of another command, as --help does. The help
// does not list this command.
func newHelp(program *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print the help of a command",
		Long:   "Print the help of a command.",
		Hidden: true,
		Example: program.Examples(`
			# Print the help of the command "join"
			{{program}} help join`),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, _, err := cmd.Root().Find(args)
			if err != nil {
				return err
			}
			return target.Help()
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// helpText returns the help of a command. Examples come first, because most users look for one. Global flags are only in
// the help of the command options. inOrder contains the subcommands of the root in the order of the table, because cobra
// would sort them by name.
func helpText(cmd *cobra.Command, program string, inOrder []*cobra.Command) string {
	var text strings.Builder
	section := func(title, body string) {
		if body = strings.TrimRight(body, "\n"); body != "" {
			fmt.Fprintf(&text, "%s\n%s\n\n", title, body)
		}
	}
	if cmd.Example != "" {
		section("Examples:", cmd.Example)
	}
	fmt.Fprintf(&text, "%s\n\n", strings.TrimSpace(cmd.Long))
	for _, group := range cmd.Groups() {
		section(group.Title, formatCommands(inOrder, group.ID))
	}
	if cmd.HasParent() {
		section("Available Commands:", formatCommands(cmd.Commands(), ""))
	}
	section("Usage:", "  "+usageLine(cmd))
	if len(cmd.Aliases) > 0 {
		section("Aliases:", "  "+cmd.NameAndAliases())
	}
	if cmd.HasParent() {
		section("Options:", cmd.NonInheritedFlags().FlagUsages())
	}
	if cmd.HasSubCommands() {
		fmt.Fprintf(&text, "Use \"%s <command> --help\" for more about a command.\n", cmd.CommandPath())
	}
	fmt.Fprintf(&text, "Use \"%s options\" for the options of all commands.\n", program)
	return text.String()
}

func usageLine(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return cmd.CommandPath() + " <command> [flags]"
	}
	return cmd.UseLine()
}

// formatCommands returns one line for each available command in the group.
func formatCommands(commands []*cobra.Command, group string) string {
	var lines []string
	width := 14
	for _, cmd := range commands {
		width = max(width, len(cmd.Name()))
	}
	for _, cmd := range commands {
		if cmd.GroupID == group && cmd.IsAvailableCommand() {
			lines = append(lines, fmt.Sprintf("  %-*s %s", width, cmd.Name(), cmd.Short))
		}
	}
	return strings.Join(lines, "\n")
}
