package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/version"
)

func newVersion(program *command.Program) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long:  "Print the version of this program.",
		Example: program.Examples(`
			# Print the version of this program
			{{program}} version

			# Print it for a script
			{{program}} version -o json`),
		Args: command.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			text, err := versionText(program.Name, output)
			if err != nil {
				return err
			}
			fmt.Fprintln(program.Out, text)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; one line of text if empty")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func versionText(program, output string) (string, error) {
	switch output {
	case "":
		return version.Line(program), nil
	case "json":
		text, err := json.MarshalIndent(version.Get(), "", "  ")
		return string(text), err
	case "yaml":
		text, err := yaml.Marshal(version.Get())
		return string(text[:max(len(text)-1, 0)]), err
	default:
		return "", command.NewUsageError("--output must be json or yaml, not %q", output)
	}
}
