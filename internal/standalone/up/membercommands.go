package up

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/standalone"
)

// memberCommand returns the command that adds and removes members of a running installation.
func memberCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Add simulated member clusters to a running `karmada up`, or remove them",
		Args:  NoArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(memberAddCommand(), memberRemoveCommand(), memberRunCommand())
	return cmd
}

func memberAddCommand() *cobra.Command {
	path, change := defaultDataDir(), memberChange{}
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Add a simulated member cluster to a running `karmada up`",
		Long:  "Start a simulated member cluster beside the others, and register it. If the data of a member of this name was kept, the member continues with it.",
		Example: `  # Add a member in the region east
  karmada member add east2 --region east
  # Add a member in pull mode, which is served by an agent
  karmada member add edge --pull`,
		Args: requireMemberName,
		RunE: func(cmd *cobra.Command, args []string) error {
			change.Add = args[0]
			return runChange(cmd, path, change)
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Data directory of the installation, as given to karmada up")
	cmd.Flags().BoolVar(&change.Pull, "pull", false, "Register the member in pull mode, in which an agent serves it")
	cmd.Flags().StringVar(&change.Region, "region", "",
		"Region of the member's Cluster and nodes. By default one of east, west, north and south")
	return cmd
}

func memberRemoveCommand() *cobra.Command {
	path, change := defaultDataDir(), memberChange{}
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a simulated member cluster from a running `karmada up`",
		Long: `Remove the Cluster of a simulated member from the control plane, end its process, and remove its
data. The objects that Karmada delivered to the member are deleted. To move workloads to other
clusters first, taint the Cluster with the effect NoExecute and wait until they have left.`,
		Example: `  # Remove member2
  karmada member remove member2`,
		Args: requireMemberName,
		RunE: func(cmd *cobra.Command, args []string) error {
			change.Remove = args[0]
			return runChange(cmd, path, change)
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Data directory of the installation, as given to karmada up")
	cmd.Flags().BoolVar(&change.Force, "force", false,
		"Remove the member even if its objects cannot be deleted, or if a finalizer keeps its Cluster")
	return cmd
}

// requireMemberName returns a usage error unless there is exactly one argument.
func requireMemberName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return NewCommandUsageError(cmd, fmt.Errorf("found %s: set the name of one member", countOf(len(args), "argument")))
	}
	return nil
}

// runChange changes the members of the installation in the data directory path.
func runChange(cmd *cobra.Command, path string, change memberChange) error {
	dir, err := parseDataDir(path)
	if err != nil {
		return err
	}
	if err := change.validate(); err != nil {
		return NewUsageError(err)
	}
	ctx, cancel := withStopSignals(cmd.Context())
	defer cancel()
	return requestChange(ctx, dir, change, cmd.ErrOrStderr())
}

// memberRunCommand returns the command that a member's child process runs.
func memberRunCommand() *cobra.Command {
	o := memberOptions{Nodes: standalone.DefaultNodeOptions()}
	cmd := &cobra.Command{
		Use:    memberRun,
		Hidden: true,
		Short:  "Run one simulated member cluster; started by `karmada up`",
		Long:   "Run one simulated member cluster until the standard input is closed. `karmada up --members N` starts N of them.",
		Args:   NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Name == "" || o.Dir == "" {
				return NewUsageError(errors.New("--name and --data-dir are required: `karmada up --members N` sets both"))
			}
			if o.Nodes.Count < 0 {
				return NewUsageError(fmt.Errorf("--nodes %d: must be 0 or more", o.Nodes.Count))
			}
			if o.CertificateLifetime < minLifetime {
				return NewUsageError(fmt.Errorf("--certificate-lifetime %s: must be at least %s", o.CertificateLifetime, minLifetime))
			}
			ctx, cancel := withStopSignals(cmd.Context())
			defer cancel()
			redirectLogs(cmd.ErrOrStderr())
			if file := parentEvents(); file != nil {
				defer func() { _ = file.Close() }()
				return runMember(ctx, o, file)
			}
			return runMember(ctx, o, io.Discard)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// memberRun is the name of the hidden subcommand of `karmada member` that runs a member.
const memberRun = "run"

// addFlags adds the flags that newMemberProcess passes to the child process.
func (m *memberOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.Name, "name", "", "Name of the cluster")
	flags.StringVar(&m.Dir, "data-dir", "", "Directory of all data of the cluster")
	flags.IntVar(&m.Port, "port", 0, "Port of the API server. 0 selects a free port")
	flags.IntVar(&m.Nodes.Count, "nodes", m.Nodes.Count, "Number of simulated nodes")
	flags.StringVar(&m.Nodes.Region, "region", "", "Region label of the nodes")
	flags.StringSliceVar(&m.Nodes.Zones, "zones", nil, "Zone labels of the nodes, assigned round-robin")
	flags.StringVar(&m.ProgramsDisabled, "programs-off", "", "Do not run Pods as processes of this machine, and report this reason")
	flags.BoolVar(&m.AllowUnconfined, "programs-unconfined", false,
		"Run Pods as processes even if the kernel cannot confine them to their files")
	flags.IntVar(&m.EstimatorPort, "estimator-port", 0,
		"Port on which the member serves estimates of its free capacity. 0 selects a free port")
	flags.StringVar(&m.EstimatorsDir, "estimators-dir", "",
		"Directory with the certificates of estimators. Without it, the member serves no estimates")
	flags.StringVar(&m.FeatureGates, "feature-gates", "", "Feature gates of the estimator, as given to karmada up")
	addLifetimeFlag(flags, &m.CertificateLifetime)
}
