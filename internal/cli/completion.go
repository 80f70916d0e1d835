package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
)

// shells contains for each shell the function that prints its completion script.
var shells = map[string]func(root *cobra.Command, program *command.Program) error{
	"bash": func(root *cobra.Command, program *command.Program) error {
		return root.GenBashCompletionV2(program.Out, true)
	},
	"fish": func(root *cobra.Command, program *command.Program) error {
		return root.GenFishCompletion(program.Out, true)
	},
	"zsh": func(root *cobra.Command, program *command.Program) error {
		return root.GenZshCompletion(program.Out)
	},
}

func newCompletion(program *command.Program) *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	known := strings.Join(names, ", ")
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print the completion script of a shell (" + known + ")",
		Long:  "Print the script that makes a shell complete the commands, flags and names of this program: " + known + ".",
		Example: program.Examples(`
			# Complete in the running bash
			source <({{program}} completion bash)

			# Complete in every zsh
			{{program}} completion zsh > "${fpath[1]}/_karmadactl"

			# Complete in every fish
			{{program}} completion fish > ~/.config/fish/completions/karmadactl.fish`),
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return command.NewUsageError("the shell is missing: one of %s", known)
			case len(args) > 1:
				return command.NewUsageError("only one shell can be named")
			case shells[args[0]] == nil:
				return command.NewUsageError("unsupported shell %q: one of %s", args[0], known)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root(), program) },
	}
}
