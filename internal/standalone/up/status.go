package up

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/console"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/controlplane"
)

const statusTimeout = 10 * time.Second

// Errors that determine the exit code of `karmada status`.
var (
	errNotRunning = errors.New("karmada is not running")
	errStarting   = errors.New("karmada is still starting")
)

func statusCommand() *cobra.Command {
	path := defaultDataDir()
	var format console.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the components that `karmada up` runs, with their state and address",
		Example: `  # Show the components with the log file of each process
  karmada status -o wide
  # Show the state of each component in machine-readable form
  karmada status -o json`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := parseDataDir(path)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			return showStatus(ctx, dir, format, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	format.AddFlag(cmd)
	cmd.Flags().StringVar(&path, "data-dir", path, "Data directory of the installation, as given to karmada up")
	return cmd
}

// showStatus prints the status in a format. Advice for the user is written to advice, so that out
// stays parsable.
func showStatus(ctx context.Context, dir dataDir, format console.Format, out, advice io.Writer) error {
	found, err := readStatus(ctx, dir)
	if found.Kubeconfig == "" {
		return err
	}
	if err := format.Print(out, found.output()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if format.IsTable() {
		if len(found.Settings) > 0 {
			fmt.Fprintf(advice, "\nStarted with: %s\n", strings.Join(found.Settings, " "))
		}
		fmt.Fprint(advice, found.metricsAdvice())
		if len(found.Excluded) > 0 {
			fmt.Fprintf(advice, "\nKarmada does not run these components here: %s\nRun each of them with --kubeconfig %s\n",
				strings.Join(found.Excluded, " "), console.ShellWord(found.Kubeconfig))
		}
		fmt.Fprintf(advice, "\nexport KUBECONFIG=%s\n", console.ShellWord(found.Kubeconfig))
		if found.Restored != "" {
			fmt.Fprintf(advice, "No objects are deleted in member clusters until the restore is confirmed.\nShow differences: karmada restore --report --data-dir %s\nConfirm: karmada restore --confirm --data-dir %[1]s\n", console.ShellWord(found.DataDir))
		}
	}
	return err
}

// readStatus returns a running installation's status. If the control plane does not respond, readStatus
// returns the members' status together with the error.
func readStatus(ctx context.Context, dir dataDir) (status, error) {
	pid, err := dir.runningProcess(ctx)
	if err != nil {
		return status{}, err
	}
	if pid == 0 {
		return status{}, fmt.Errorf("%w on %s: start it with `karmada up --data-dir %s`", errNotRunning, dir.path, dir.quoted())
	}
	if _, err := os.Stat(dir.karmadaKubeconfig()); errors.Is(err, os.ErrNotExist) {
		return status{}, fmt.Errorf("%w (process %d): see %s for its progress", errStarting, pid, dir.logFile("karmada"))
	}
	karmada, err := clientcmd.BuildConfigFromFlags("", dir.karmadaKubeconfig())
	if err != nil {
		return status{}, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	client, err := kubernetes.NewForConfig(karmada)
	if err != nil {
		return status{}, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	state, err := dir.readState()
	if err != nil {
		return status{}, err
	}
	members, err := dir.memberProcesses(ctx, state)
	if err != nil {
		return status{}, err
	}
	found := status{
		DataDir: dir.path, Kubeconfig: dir.karmadaKubeconfig(), Settings: state.Settings.flags(isNoFlag),
		Hosted: state.Settings.hostedComponents(), Excluded: state.Settings.excludedComponents(),
	}
	self := statusRow{Kind: kindControlPlane, Name: "karmada", State: readHealth(ctx, client), Address: karmada.Host}
	self.setProcess(memberProcess{name: controlplane.APIServer, pid: pid, log: dir.logFile("karmada")})
	if e, _, err := readEpoch(ctx, client); err == nil && e.NeedsConfirmation() {
		found.Restored = e.DescribeOrigin()
		self.State += ", " + found.Restored + ", not confirmed"
	}
	clusters, err := listClusters(ctx, karmada)
	found.Components = append([]statusRow{self}, statusRows(clusters, err == nil, members)...)
	return found, err
}

// memberProcess is a simulated member. pid is 0 if the member has no process.
type memberProcess struct {
	name, address string
	pid           int
	log           string
}

// memberProcesses returns the simulated members of an installation that has the given state.
func (d dataDir) memberProcesses(ctx context.Context, state storedState) ([]memberProcess, error) {
	members := make([]memberProcess, 0, len(state.Members))
	for _, name := range state.Members {
		pid, err := dataDir{d.memberDir(name)}.runningProcess(ctx)
		if err != nil {
			return nil, err
		}
		members = append(members, memberProcess{
			name: name, pid: pid, address: standalone.LoopbackURL(state.Ports[name]), log: d.logFile(name),
		})
	}
	return members, nil
}

// Kinds of statusRow.
const (
	kindControlPlane = "ControlPlane"
	kindCluster      = "Cluster"
	kindMember       = "Member"
)

// status is what `karmada status` prints as JSON and YAML.
type status struct {
	DataDir    string `json:"dataDir"`
	Kubeconfig string `json:"kubeconfig"`
	// Restored describes the restored backup until a user confirms the restore. Until then, no objects
	// are deleted in member clusters.
	Restored string `json:"restored,omitempty"`
	// Settings are the flags of karmada up that differ from their defaults. They also apply to later
	// starts.
	Settings []string `json:"settings,omitempty"`
	// Hosted are the Karmada components that the control plane's process runs. Excluded are the
	// components that the option --components excludes.
	Hosted     []string    `json:"hosted,omitempty"`
	Excluded   []string    `json:"excluded,omitempty"`
	Components []statusRow `json:"components"`
}

type statusRow struct {
	// Kind is ControlPlane, Cluster, or Member. A Member is a simulated cluster that is not registered.
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	State   string `json:"state"`
	Address string `json:"address"`
	// Process is the process ID of this installation's component. It is 0 if the component has no
	// process.
	Process *int   `json:"process,omitempty"`
	Log     string `json:"log,omitempty"`
	// Metrics is the address at which the process serves all its metrics. Clients need the permission
	// to get the path /metrics of its API server.
	Metrics string `json:"metrics,omitempty"`
	// context is the name of the component's context in the kubeconfig. Only components with a process
	// have one.
	context string
}

// processEnded is the state of a component without a process, regardless of what its Cluster reports.
const processEnded = "No process"

// setProcess sets the component's process. The Cluster may still be Ready although the process has
// ended, if the control plane has not noticed this yet.
func (s *statusRow) setProcess(process memberProcess) {
	s.Process, s.Log, s.context = &process.pid, process.log, process.name
	if process.pid == 0 {
		s.State = processEnded
		return
	}
	s.Metrics = s.Address + standalone.MetricsPath
}

// displayName returns the value in the column COMPONENT.
func (s statusRow) displayName() string {
	title := s.Name
	if s.Kind == kindCluster {
		title = "cluster " + title
	}
	switch {
	case s.Process == nil:
		return title
	case *s.Process == 0:
		return title
	}
	return fmt.Sprintf("%s (process %d)", title, *s.Process)
}

// output returns the status for all output formats.
func (s status) output() console.Output {
	output := console.Output{Header: []string{"COMPONENT", "STATE", "ADDRESS", "LOG", "METRICS"}, NarrowColumns: 3, ColumnGap: 3, Object: s}
	for _, row := range s.Components {
		output.Rows = append(output.Rows, []string{row.displayName(), row.State, row.Address, cmp.Or(row.Log, "<none>"),
			cmp.Or(row.Metrics, "<none>")})
		output.Names = append(output.Names, strings.ToLower(row.Kind)+"/"+row.Name)
	}
	return output
}

// statusRows returns a row for each Cluster, followed by the members that are not registered. A
// simulated cluster's row contains its process. If known is false, the Clusters could not be listed,
// and the members' state is Unknown.
func statusRows(clusters []clusterv1alpha1.Cluster, known bool, members []memberProcess) []statusRow {
	var rows []statusRow
	joined := map[string]bool{}
	for i := range clusters {
		cluster := &clusters[i]
		row := statusRow{Kind: kindCluster, Name: cluster.Name, State: "NotReady", Address: cluster.Spec.APIEndpoint}
		if domain.IsReady(cluster) {
			row.State = "Ready"
		}
		if n := slices.IndexFunc(members, func(m memberProcess) bool { return m.address == cluster.Spec.APIEndpoint }); n >= 0 {
			joined[members[n].name] = true
			row.setProcess(members[n])
		}
		rows = append(rows, row)
	}
	for i := range members {
		member := &members[i]
		if joined[member.name] {
			continue
		}
		state := "Not joined"
		if !known {
			state = "Unknown"
		}
		row := statusRow{Kind: kindMember, Name: member.name, State: state, Address: member.address}
		row.setProcess(*member)
		rows = append(rows, row)
	}
	return rows
}

// metricsAdvice describes how to read each process's metrics.
func (s status) metricsAdvice() string {
	text := fmt.Sprintf("\nMetrics of the control plane: kubectl --kubeconfig %s get --raw %s\n", console.ShellWord(s.Kubeconfig),
		standalone.MetricsPath)
	for _, row := range s.Components {
		if row.Metrics != "" && row.Kind != kindControlPlane {
			return text + fmt.Sprintf("Metrics of %s: kubectl --kubeconfig %[2]s --context %[1]s get --raw %[3]s\n", row.context,
				console.ShellWord(dataDir{s.DataDir}.membersKubeconfig()), standalone.MetricsPath)
		}
	}
	return text
}

func isNoFlag(string) bool { return false }

func readHealth(ctx context.Context, client kubernetes.Interface) string {
	response, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return "NotReady: " + err.Error()
	}
	if string(response) != "ok" {
		return "NotReady"
	}
	return "Ready"
}
