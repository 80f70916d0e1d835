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
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
)

// readyFDVariable names the file descriptor to which a child process writes its
// events.
const readyFDVariable = "KARMADA_EVENTS_FD"

// Commands are the subcommands of `karmada` that run things on this machine.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		upCommand(), downCommand(), statusCommand(), backupCommand(), restoreCommand(), memberCommandLine(), readerCommandLine(), demoCommand(),
	}
}

// signalled is a context that ends when the process is asked to stop. Who asks twice
// does not want to wait.
func signalled(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, restore := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	return ctx, restore
}

func upCommand() *cobra.Command {
	o := Options{DataDir: defaultDataDir(), BindAddress: standalone.Loopback, Members: -1, PullMembers: -1, Components: []string{"*"}, Gates: gates.New()}
	var detach, join, programsWanted bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a Karmada control plane on this machine, with simulated member clusters on request",
		Example: `  # A control plane
  karmada up
  # With three member clusters, in the background
  karmada up --members 3 --detach`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDirOf(o.DataDir)
			if err != nil {
				return err
			}
			o.DataDir = dir.path
			if cmd.Flags().Changed("join") {
				o.Join = &join
			}
			if cmd.Flags().Changed(memberProgramsFlag) {
				o.MemberPrograms = &programsWanted
			}
			if o.AuditLog, err = auditLogIn(dir, o.AuditLog); err != nil {
				return err
			}
			if err := o.validate(cmd.Flags().Changed); err != nil {
				return err
			}
			ctx, cancel := signalled(cmd.Context())
			defer cancel()
			if detach {
				return runDetached(ctx, o, cmd.ErrOrStderr())
			}
			return runForeground(ctx, o, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.DataDir, "data-dir", o.DataDir, "Directory of everything this installation keeps")
	flags.IntVar(&o.Members, "members", o.Members, "Simulated member clusters, member1 to memberN; by default as many as last time")
	flags.IntVar(&o.PullMembers, "pull-members", o.PullMembers, "How many of the members register themselves and are served by an agent; needs --members. By default every third: member3, member6 and so on")
	flags.IntVar(&o.NodesPerMember, "nodes-per-member", o.NodesPerMember, fmt.Sprintf("Simulated nodes of each member cluster; by default as many as last time, at first %d", standalone.DefaultNodeOptions().Count))
	flags.BoolVar(&join, "join", true, "Register the member clusters; false leaves that to karmadactl join. By default as last time")
	flags.StringSliceVar(&o.Components, "components", o.Components,
		"Components of Karmada to run: * is all, x is the component x, -x is all but x, nothing is none. All components: "+strings.Join(programs.ComponentNames(), ", "))
	o.Gates.AddFlag(flags)
	flags.StringArrayVar(&o.Extra, "extra-config", nil,
		"Flag of a component, as COMPONENT.FLAG=VALUE; may be repeated. Components: "+strings.Join(controlplane.Configurable(), ", ")+"; their --help tells the flags")
	lifetimeFlag(flags, &o.CertificateLifetime)
	flags.StringVar(&o.AuditLog, "audit-log", "", "Record the requests to the API server of the control plane in this file, without their bodies. Without a value: "+auditLogDefault)
	flags.Lookup("audit-log").NoOptDefVal = auditLogDefault
	flags.BoolVar(&programsWanted, memberProgramsFlag, true, "Run Pods of Karmada's images in members, such as agents, as processes of this machine. By default while --bind-address is a loopback address and the kernel can confine them to their files; giving the flag allows both")
	flags.BoolVar(&detach, "detach", false, "Return when everything is ready and go on in the background")
	flags.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "Address that the API server listens on; anything but loopback lets other machines in")
	return cmd
}

const maxMembers = 20

func (o Options) validate(given func(flag string) bool) error {
	membersGiven := given("members")
	if membersGiven && (o.Members < 0 || o.Members > maxMembers) {
		return Wrong(fmt.Errorf("--members %d: must be between 0 and %d", o.Members, maxMembers))
	}
	if given("pull-members") && (!membersGiven || o.PullMembers < 0 || o.PullMembers > o.Members) {
		return Wrong(fmt.Errorf("--pull-members %d: must be between 0 and what --members says, which must be given too", o.PullMembers))
	}
	if given("nodes-per-member") && o.NodesPerMember < 1 {
		return Wrong(fmt.Errorf("--nodes-per-member %d: must be at least 1, for Pods need a node to run on", o.NodesPerMember))
	}
	if o.CertificateLifetime < minLifetime {
		return Wrong(fmt.Errorf("--certificate-lifetime %s: must be at least %s", o.CertificateLifetime, minLifetime))
	}
	if err := checkAddress(o.BindAddress); err != nil {
		return Wrong(err)
	}
	if err := programs.ValidateSelection("components", "component", o.Components, programs.ComponentNames()); err != nil {
		return Wrong(err)
	}
	if _, err := controlplane.Configure(o.Gates, o.Extra); err != nil {
		return Wrong(fmt.Errorf("--extra-config %w", err))
	}
	return nil
}

// checkAddress finds out whether servers can listen on an address.
func checkAddress(address string) error {
	if net.ParseIP(address) == nil {
		return fmt.Errorf("--bind-address %q: must be an IP address of this machine, such as %s", address, standalone.Loopback)
	}
	listener, err := standalone.Listen(address, 0)
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		return fmt.Errorf("--bind-address %s: this machine has no such address: `ip address` shows those that it has", address)
	}
	if err != nil {
		return fmt.Errorf("--bind-address %s: %w", address, err)
	}
	return listener.Close() //nolint:wrapcheck // nothing was done with it
}

// NoArguments refuses what is neither a command nor a flag.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return WrongIn(cmd, fmt.Errorf("unexpected argument %q", args[0]))
}

// runForeground runs the installation in this process.
func runForeground(ctx context.Context, o Options, out io.Writer) error {
	dir := dataDir{o.DataDir}
	if err := dir.unused(); err != nil {
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
	logTo(log)
	captureOutput(log)
	emit, end := newScreen(out)
	defer end()
	if events := eventsFromParent(); events != nil {
		defer func() { _ = events.Close() }()
		emit = encoder(events)
	}
	tell := newProgress(emit)
	if err := run(ctx, o, zapcore.AddSync(log), tell); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Ended")
		tell.tell(event{Error: err.Error()})
		return fmt.Errorf("%w (see %s)", err, log.Name())
	}
	return nil
}

// eventsFromParent is where a parent process reads what happens, nil without one.
func eventsFromParent() *os.File {
	fd, err := strconv.Atoi(os.Getenv(readyFDVariable))
	if err != nil || fd < 3 {
		return nil
	}
	// Children of this process have a parent of their own to tell.
	_ = os.Unsetenv(readyFDVariable)
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "events")
}

// logTo sends the logs of all libraries to a file. The libraries give them to
// klog, which is the same for the whole process.
func logTo(file io.Writer) {
	klog.LogToStderr(false)
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	// Otherwise an error is written three times, and on the terminal as well.
	_, _ = flags.Set("one_output", "true"), flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(file)
	stdlog.SetOutput(file)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}

// silenceLibraries discards the logs of all libraries, in a command whose own output says
// everything.
func silenceLibraries() {
	logTo(io.Discard)
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
}

// captureOutput sends to a file what libraries write for themselves, such as etcd's
// client: the terminal is for what matters. Nothing of a library may run yet. A panic
// is still told on the terminal.
func captureOutput(file *os.File) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, file, file))
	os.Stdout, os.Stderr = file, file
}

func memberCommandLine() *cobra.Command {
	o := memberOptions{Nodes: standalone.DefaultNodeOptions()}
	cmd := &cobra.Command{
		Use:   "member",
		Short: "Run one simulated member cluster; `karmada up` starts these",
		Long:  "Run one simulated member cluster until the standard input ends; `karmada up --members N` starts N of these.",
		Args:  NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Name == "" || o.Dir == "" {
				return Wrong(errors.New("--name and --data-dir are needed: `karmada up --members N` gives both"))
			}
			if o.Nodes.Count < 0 {
				return Wrong(fmt.Errorf("--nodes %d: must be 0 or more", o.Nodes.Count))
			}
			if o.CertificateLifetime < minLifetime {
				return Wrong(fmt.Errorf("--certificate-lifetime %s: must be at least %s", o.CertificateLifetime, minLifetime))
			}
			ctx, cancel := signalled(cmd.Context())
			defer cancel()
			logTo(os.Stderr)
			if file := eventsFromParent(); file != nil {
				defer func() { _ = file.Close() }()
				return runMember(ctx, o, file)
			}
			return runMember(ctx, o, io.Discard)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// addFlags adds the flags that memberCommand gives.
func (o *memberOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Name, "name", "", "Name of the cluster")
	flags.StringVar(&o.Dir, "data-dir", "", "Directory of everything the cluster keeps")
	flags.IntVar(&o.Port, "port", 0, "Port of its API server; 0 picks a free one")
	flags.IntVar(&o.Nodes.Count, "nodes", o.Nodes.Count, "Simulated nodes")
	flags.StringVar(&o.Nodes.Region, "region", "", "Region label of the nodes")
	flags.StringSliceVar(&o.Nodes.Zones, "zones", nil, "Zone labels of the nodes, dealt out in turn")
	flags.StringVar(&o.ProgramsOff, "programs-off", "", "Run no Pods as processes of this machine, for this reason")
	flags.BoolVar(&o.ProgramsUnconfined, "programs-unconfined", false, "Run Pods as processes also where the kernel cannot confine them to their files")
	lifetimeFlag(flags, &o.CertificateLifetime)
}

// lifetimeFlag is for those who want to see certificates renewed: nobody needs
// another lifetime, for they renew themselves.
func lifetimeFlag(flags *pflag.FlagSet, lifetime *time.Duration) {
	flags.DurationVar(lifetime, "certificate-lifetime", pki.DefaultLeafLifetime, "How long issued certificates are valid; each is renewed when a third of that is left")
	_ = flags.MarkHidden("certificate-lifetime")
}

// minLifetime leaves the servers time to notice that a certificate is another one.
const minLifetime = 5 * time.Second

const (
	stopTimeout   = 30 * time.Second
	stopPollEvery = 100 * time.Millisecond
)
