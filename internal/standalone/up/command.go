package up

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/pki"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/standalone"
)

// eventsFDVariable is the environment variable that contains the file descriptor to which a child
// process writes its events.
const eventsFDVariable = "KARMADA_EVENTS_FD"

// Commands returns the subcommands of `karmada` that run Karmada on this machine.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		upCommand(), downCommand(), statusCommand(), backupCommand(), restoreCommand(), memberCommand(), storedClustersCommand(), demoCommand(),
	}
}

// withStopSignals returns a context that ends when the process receives SIGINT or SIGTERM. A second
// signal kills the process.
func withStopSignals(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func upCommand() *cobra.Command {
	o := defaultOptions()
	var detach, join, runPrograms bool
	cmd := &cobra.Command{
		Use:        "up",
		SuggestFor: []string{"start", "run"},
		Short:      "Run a Karmada control plane on this machine, with simulated member clusters on request",
		Example: `  # Run a control plane
  karmada up
  # Run a control plane with three member clusters in the background
  karmada up --members 3 --detach
  # Add a fourth member cluster while it runs
  karmada up --members 4`,
		Long: `Run a Karmada control plane on this machine, with simulated member clusters on request.

All data is kept in the data directory. A later start has the same members and settings, unless it
sets the flags again; an empty list, such as --feature-gates=, is the default. While Karmada runs, a second "karmada up" with
a greater number of members adds the missing ones.`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := withStopSignals(cmd.Context())
			defer cancel()
			flags := cmd.Flags()
			if flags.Changed("join") {
				o.Join = &join
			}
			if flags.Changed(memberProgramsFlag) {
				o.MemberPrograms = &runPrograms
			}
			kept, err := o.complete(flags.Changed)
			if err != nil {
				return err
			}
			change, err := o.changeOfRunning(ctx, flags)
			if err != nil {
				return err
			}
			if change != nil {
				return requestChange(ctx, dataDir{o.DataDir}, *change, cmd.ErrOrStderr())
			}
			if len(kept) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "Settings of the last start: %s\n", strings.Join(kept, " "))
			}
			if detach {
				return runDetached(ctx, o, cmd.ErrOrStderr())
			}
			return runForeground(ctx, o, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory of all data of the installation")
	flags.IntVar(&o.Members, membersFlag, o.Members,
		"Number of simulated member clusters, member1 to memberN. By default the same as in the last start. While Karmada runs, a greater number adds members")
	flags.IntVar(&o.PullMembers, pullMembersFlag, o.PullMembers,
		"Number of members in pull mode, which are served by an agent. Requires --members. By default every third: member3, member6 and so on")
	flags.IntVar(&o.NodesPerMember, "nodes-per-member", o.NodesPerMember,
		fmt.Sprintf("Number of simulated nodes of each member cluster. By default the same as in the last start, initially %d",
			standalone.DefaultNodeOptions().Count))
	flags.BoolVar(&join, "join", true, "Register the member clusters. With false you register them with karmadactl join. By default the same as in the last start")
	flags.StringSliceVar(&o.Components, componentsFlag, o.Components,
		"Components of Karmada to run: * is all, x is the component x, -x excludes x, an empty value is none. All components: "+strings.Join(components.SelectableNames(), ", "))
	o.Gates.AddFlag(flags)
	flags.StringArrayVar(&o.ExtraConfig, extraConfigFlag, nil,
		"Flag of a component, as COMPONENT.FLAG=VALUE. May be repeated. Components: "+strings.Join(components.ConfigurableNames(),
			", ")+"; their --help lists the flags")
	addLifetimeFlag(flags, &o.CertificateLifetime)
	flags.StringVar(&o.AuditLog, auditLogFlag, "",
		"Write an audit log of the API server of the control plane to this file, without request bodies. Without a value: "+auditLogDefault)
	flags.Lookup(auditLogFlag).NoOptDefVal = auditLogDefault
	flags.BoolVar(&o.Failover, failoverFlag, o.Failover,
		"Let NoExecute taints of clusters evict workloads: sets the feature gate Failover, and the flags enable-no-execute-taint-eviction of karmada-controller-manager and allow-no-execute-taint-policy of karmada-webhook")
	flags.BoolVar(&runPrograms, memberProgramsFlag, true,
		"Run Pods of Karmada's images in members, such as agents, as processes of this machine. By default enabled if --bind-address is a loopback address and the kernel can confine the processes to their files. Setting the flag enables them in any case")
	flags.BoolVar(&detach, "detach", false, "Return when everything is ready and continue in the background")
	flags.StringVar(&o.BindAddress, bindAddressFlag, o.BindAddress,
		"Address on which the API server listens. With an address other than loopback, other machines can connect")
	return cmd
}

// defaultOptions returns the options of `karmada up` if no flags are set.
func defaultOptions() Options {
	return Options{
		DataDir: defaultDataDir(), BindAddress: standalone.Loopback, Members: -1, PullMembers: -1, Components: allComponents,
		Gates: gates.New(), Failover: true, CertificateLifetime: pki.DefaultLeafLifetime,
	}
}

// complete resolves paths, adopts the settings of the last start, and validates the options. It returns
// the adopted settings in the form of flags.
func (o *Options) complete(isSet func(flag string) bool) (kept []string, err error) {
	dir, err := parseDataDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	o.DataDir = dir.path
	state, err := dir.readState()
	if err != nil {
		return nil, err
	}
	if err := o.restoreSettings(state.Settings, isSet); err != nil {
		return nil, err
	}
	if o.AuditLog, err = resolveAuditLog(dir, o.AuditLog); err != nil {
		return nil, err
	}
	return state.Settings.flags(isSet), o.validate(isSet)
}

// changeOfRunning returns the change that a start with --members makes to an installation that is
// already running, or nil if none is running. Other flags cannot be changed while it is running.
func (o *Options) changeOfRunning(ctx context.Context, flags *pflag.FlagSet) (*memberChange, error) {
	dir := dataDir{o.DataDir}
	pid, err := dir.runningProcess(ctx)
	if err != nil || pid == 0 || !flags.Changed(membersFlag) {
		return nil, err
	}
	var others []string
	flags.Visit(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"data-dir", membersFlag, pullMembersFlag, "detach"}, flag.Name) {
			others = append(others, "--"+flag.Name)
		}
	})
	if len(others) > 0 {
		return nil, NewUsageError(fmt.Errorf("%s cannot change while process %d runs: stop it first with `%s`, or set --%s alone to add members",
			strings.Join(others, ", "), pid, dir.stopCommand(), membersFlag))
	}
	return &memberChange{Members: &o.Members, PullMembers: o.PullMembers}, nil
}

const maxMembers = 20

// Names of the flags of `karmada up`.
const (
	membersFlag     = "members"
	pullMembersFlag = "pull-members"
)

func (o Options) validate(isSet func(flag string) bool) error {
	membersGiven := isSet(membersFlag)
	if membersGiven && (o.Members < 0 || o.Members > maxMembers) {
		return NewUsageError(fmt.Errorf("--members %d: must be between 0 and %d", o.Members, maxMembers))
	}
	if isSet(pullMembersFlag) && (!membersGiven || o.PullMembers < 0 || o.PullMembers > o.Members) {
		return NewUsageError(fmt.Errorf("--pull-members %d: must be between 0 and the value of --members, which is required", o.PullMembers))
	}
	if isSet("nodes-per-member") && o.NodesPerMember < 1 {
		return NewUsageError(fmt.Errorf("--nodes-per-member %d: must be at least 1, because Pods need a node", o.NodesPerMember))
	}
	if isSet(failoverFlag) && o.Failover && o.Gates.ExplicitlySet(gates.Failover) && !o.Gates.Enabled(gates.Failover) {
		return NewUsageError(fmt.Errorf("--%s: --%s=%s disables the gate %s, also if the flag was set in the last start: set --%s without this gate", failoverFlag, gatesFlag, o.Gates.Given(), gates.Failover, gatesFlag))
	}
	if o.CertificateLifetime < minLifetime {
		return NewUsageError(fmt.Errorf("--certificate-lifetime %s: must be at least %s", o.CertificateLifetime, minLifetime))
	}
	if err := validateBindAddress(o.BindAddress); err != nil {
		return NewUsageError(err)
	}
	if err := programs.ValidateSelection("components", "component", o.Components, components.SelectableNames()); err != nil {
		return NewUsageError(err)
	}
	if _, err := components.Configure(o.Gates, o.ExtraConfig); err != nil {
		return NewUsageError(fmt.Errorf("--extra-config %w", err))
	}
	return nil
}

// validateBindAddress returns an error if servers cannot listen on the address.
func validateBindAddress(address string) error {
	if net.ParseIP(address) == nil {
		return fmt.Errorf("--bind-address %q: must be an IP address of this machine, such as %s", address, standalone.Loopback)
	}
	listener, err := standalone.Listen(address, 0)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("--bind-address %s: this machine has no such address: `ip address` lists its addresses", address)
	}
	if err != nil {
		return fmt.Errorf("--bind-address %s: %w", address, err)
	}
	return listener.Close() // the listener was only needed for this check
}

// NoArguments returns a usage error if there are arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return NewCommandUsageError(cmd, fmt.Errorf("unexpected argument %q", args[0]))
}

// runForeground runs the installation in this process.
func runForeground(ctx context.Context, o Options, out io.Writer) error {
	dir := dataDir{o.DataDir}
	if err := dir.ensureUnused(ctx); err != nil {
		return err
	}
	if err := dir.create(); err != nil {
		return err
	}
	log, err := dir.openLog("karmada")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	redirectLogs(log)
	// Some libraries, such as etcd's client, write directly to stdout and stderr. A panic is still
	// printed on the terminal.
	os.Stdout, os.Stderr = log, log
	send, end := newScreen(out)
	defer end()
	if events := parentEvents(); events != nil {
		defer func() { _ = events.Close() }()
		send = newEventEncoder(events)
	}
	progress := newProgress(send)
	if err := runInstallation(ctx, o, zapcore.AddSync(log), progress); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Ended")
		progress.report(event{Error: err.Error()})
		return fmt.Errorf("%w (see %s)", err, log.Name())
	}
	return nil
}

// parentEvents returns the file to which this process writes events for its parent process, or nil if
// no parent process reads events.
func parentEvents() *os.File {
	fd, err := strconv.Atoi(os.Getenv(eventsFDVariable))
	if err != nil || fd < 3 {
		return nil
	}
	// Prevent this process's children from writing to the events file.
	_ = os.Unsetenv(eventsFDVariable)
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "events")
}

// redirectLogs writes all libraries' logs to file. The libraries log with klog and gRPC, whose settings
// apply to the whole process. gRPC's warnings are discarded, because etcd clients cause one for each
// connection that they replace while they start.
func redirectLogs(file io.Writer) {
	klog.LogToStderr(false)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// Without these flags, klog writes each error three times, and also to the terminal.
	_, _ = flags.Set("one_output", "true"), flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(file)
	stdlog.SetOutput(file)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, file))
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

// SilenceLibraries discards all libraries' logs, because the commands themselves print everything that
// is relevant. `karmada up` and the members later redirect the logs to files.
func SilenceLibraries() { redirectLogs(io.Discard) }

// addLifetimeFlag adds a hidden flag for tests of certificate renewal. Users do not need it, because
// certificates are renewed automatically.
func addLifetimeFlag(flags *pflag.FlagSet, lifetime *time.Duration) {
	flags.DurationVar(lifetime, "certificate-lifetime", pki.DefaultLeafLifetime,
		"Validity of issued certificates. Each is renewed when a third of its validity is left")
	_ = flags.MarkHidden("certificate-lifetime")
}

// minLifetime is the minimum validity of certificates. With a shorter validity, servers would not
// reload renewed certificates before the old ones expire.
const minLifetime = 5 * time.Second

const (
	stopTimeout      = 30 * time.Second
	stopPollInterval = 100 * time.Millisecond
)
