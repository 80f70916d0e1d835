package addons

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
)

func newDisable(program *command.Program) *cobra.Command {
	s := &session{program: program}
	isForced := false
	cmd := &cobra.Command{
		Use:   "disable",
		Short: "Remove addons",
		Long: `Remove addons that "addons enable" installed. Objects of other installers are kept.

karmada-scheduler-estimator serves one member: run the command once for each member.`,
		Example: program.Examples(`
			# Remove the estimator of the member "east"
			{{program}} addons disable karmada-scheduler-estimator -C east

			# Remove the descheduler without a question
			{{program}} addons disable karmada-descheduler -f`),
		Args: s.validateNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			selected, err := selectAddons(args, s.cluster, program.Messagef)
			if err != nil {
				return err
			}
			if err := s.validateDisable(selected); err != nil {
				return err
			}
			if !isForced {
				if agreed, err := program.Confirm(s.disableQuestion(selected), "--force"); err != nil || !agreed {
					return err
				}
			}
			if err := s.connectHost(); err != nil {
				return err
			}
			for _, row := range selected {
				if err := row.disable(cmd.Context(), s); err != nil {
					return fmt.Errorf("disabling %s: %w", row.name, err)
				}
				fmt.Fprintf(program.Out, "addon %s disabled\n", row.name)
			}
			return nil
		},
		ValidArgsFunction: completeAddons,
	}
	s.addFlags(cmd)
	cmd.Flags().BoolVarP(&isForced, "force", "f", false, "ask no question")
	return cmd
}

func (s *session) validateDisable(selected []addon) error {
	for _, row := range selected {
		if row.name == install.EstimatorProgram && s.cluster == "" {
			return command.NewUsageError("%s serves one member: set its name with --cluster", row.name)
		}
	}
	return nil
}

func (s *session) disableQuestion(selected []addon) string {
	var list []string
	for _, row := range selected {
		name := row.name
		if name == install.EstimatorProgram {
			name += " of cluster " + s.cluster
		}
		list = append(list, name)
	}
	return "Remove " + strings.Join(list, ", ") + "?"
}
