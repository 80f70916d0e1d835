package addons

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/rendering"
)

const (
	defaultPriorityClass     = "system-node-critical"
	defaultPodTimeout        = 120
	defaultAPIServiceTimeout = 30
)

// enableOptions are the flags of the command "enable".
type enableOptions struct {
	member                        command.Kubeconfig
	hostDomain                    string
	podTimeout, apiServiceTimeout int
	registry                      string
	// addons contains each addon's flags by its name.
	addons map[string]*addonOptions
}

// addonOptions are one addon's flags.
type addonOptions struct {
	image         string
	replicas      int32
	priorityClass string
}

func newEnable(program *command.Program) *cobra.Command {
	s, o := &session{program: program}, &enableOptions{addons: map[string]*addonOptions{}}
	cmd := &cobra.Command{
		Use:   "enable",
		Short: "Install addons",
		Long: `Install addons, or change installed addons to the given flags. A second run with
the same flags changes nothing.

The addons are karmada-descheduler, karmada-scheduler-estimator and karmada-search, or
all of them. karmada-search is also registered in the control plane.
karmada-scheduler-estimator serves one member: run the command once for each member.`,
		Example: program.Examples(`
			# Install the estimator of the member "east"
			{{program}} addons enable karmada-scheduler-estimator -C east --member-kubeconfig=$HOME/.kube/east.config

			# Install all addons that belong to no single member
			{{program}} addons enable all

			# Take the images from another registry
			{{program}} addons enable karmada-descheduler --private-image-registry=registry.example.com/karmada`),
		Args: s.validateNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			selected, err := selectAddons(args, s.cluster, program.Messagef)
			if err != nil {
				return err
			}
			if err := o.validate(s, selected); err != nil {
				return err
			}
			if err := s.connectHost(); err != nil {
				return err
			}
			return s.enableAll(cmd.Context(), selected, o)
		},
		ValidArgsFunction: completeAddons,
	}
	s.addFlags(cmd)
	o.addFlags(program, cmd)
	return cmd
}

// enableAll installs addons. If an addon fails, enableAll still installs the others.
func (s *session) enableAll(ctx context.Context, selected []addon, o *enableOptions) error {
	var errs []error
	for _, row := range selected {
		written, err := row.enable(ctx, s, o)
		outcome := "enabled"
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("enabling %s: %w", row.name, err))
			continue
		case written == 0:
			outcome = "unchanged"
		}
		fmt.Fprintf(s.program.Out, "addon %s %s\n", row.name, outcome)
	}
	return errors.Join(errs...)
}

func (o *enableOptions) addFlags(program *command.Program, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.member.Path, "member-kubeconfig", "", "kubeconfig of the member that the estimator serves")
	_ = cmd.MarkFlagFilename("member-kubeconfig")
	program.AddContext(cmd, "member-context", &o.member.Context, command.MemberContextUsage, func() string { return o.member.Path })
	flags.StringVar(&o.hostDomain, "host-cluster-domain", "cluster.local", "DNS domain of the host cluster")
	flags.IntVar(&o.podTimeout, "pod-timeout", defaultPodTimeout, "seconds to wait for the Pods of an addon")
	flags.IntVar(&o.apiServiceTimeout, "apiservice-timeout", defaultAPIServiceTimeout,
		"seconds to wait for the APIServices of an addon in the control plane")
	flags.StringVar(&o.registry, "private-image-registry", "", "registry of the image of Karmada, which contains all programs")
	for _, row := range []struct{ addon, prefix, priority string }{
		{install.DeschedulerProgram, install.DeschedulerProgram, "descheduler"},
		{metricsAdapter, metricsAdapter, "metrics-adapter"},
		{install.EstimatorProgram, "karmada-estimator", "estimator"},
		{install.SearchProgram, install.SearchProgram, "search"},
	} {
		a := &addonOptions{}
		o.addons[row.addon] = a
		flags.StringVar(&a.image, row.addon+"-image", install.DefaultImage(), "image of "+row.addon)
		flags.Int32Var(&a.replicas, row.prefix+"-replicas", 1, "replicas of "+row.addon)
		flags.StringVar(&a.priorityClass, row.priority+"-priority-class", defaultPriorityClass, "PriorityClass of the Pods of "+row.addon)
	}
}

func (o *enableOptions) validate(s *session, selected []addon) error {
	if o.podTimeout <= 0 {
		return command.NewUsageError("--pod-timeout %d: must be at least 1 second", o.podTimeout)
	}
	if err := rendering.ValidateRegistry(o.registry); o.registry != "" && err != nil {
		return command.NewUsageError("--private-image-registry %q: %w", o.registry, err)
	}
	if o.apiServiceTimeout <= 0 {
		return command.NewUsageError("--apiservice-timeout %d: must be at least 1 second", o.apiServiceTimeout)
	}
	for _, row := range selected {
		image := o.addons[row.name].image
		if err := rendering.ValidateImage(image); image != "" && image != install.DefaultImage() && err != nil {
			return command.NewUsageError("--%s-image %q: %w", row.name, image, err)
		}
		if replicas := o.addons[row.name].replicas; replicas < 1 {
			return command.NewUsageError("the number of replicas of %s is %d: it must be at least 1; use the command disable to remove the addon",
				row.name, replicas)
		}
		if row.name != install.EstimatorProgram {
			continue
		}
		if s.cluster == "" {
			return command.NewUsageError("%s serves one member: set its name with --cluster", row.name)
		}
		if o.member.Path == "" {
			return command.NewUsageError("%s reads the member: set its kubeconfig with --member-kubeconfig", row.name)
		}
		if err := validateCluster(s.cluster); err != nil {
			return err
		}
	}
	return nil
}

func (o *enableOptions) podTimeoutDuration() time.Duration {
	return time.Duration(o.podTimeout) * time.Second
}
