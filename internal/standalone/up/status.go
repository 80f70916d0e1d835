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
)

const statusTimeout = 10 * time.Second

// What gives `karmada status` its exit code.
var (
	errNotRunning = errors.New("karmada is not running")
	errStarting   = errors.New("karmada is still starting")
)

func statusCommand() *cobra.Command {
	path := defaultDataDir()
	var format console.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what `karmada up` runs, where, and what to type",
		Example: `  # What runs, with the log of each process
  karmada status -o wide
  # The state of each component, for a program
  karmada status -o json`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDirOf(path)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			return showStatus(ctx, dir, format, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	format.AddFlag(cmd)
	cmd.Flags().StringVar(&path, "data-dir", path, "Directory that was given to up")
	return cmd
}

// showStatus prints the status in a format. Advice is for people, and goes to another
// output.
func showStatus(ctx context.Context, dir dataDir, format console.Format, out, advice io.Writer) error {
	found, err := readStatus(ctx, dir)
	if found.Kubeconfig == "" {
		return err
	}
	if err := format.Print(out, found.output()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if format.IsTable() {
		fmt.Fprintf(advice, "\nexport KUBECONFIG=%s\n", found.Kubeconfig)
		if found.Restored != "" {
			fmt.Fprintf(advice, "Nothing is deleted in member clusters. What differs: karmada restore --report --data-dir %s\nTo end that: karmada restore --confirm --data-dir %[1]s\n", found.DataDir)
		}
	}
	return err
}

// readStatus returns the status of an installation that runs. Where the control plane
// does not answer, what is known of the members comes with the error.
func readStatus(ctx context.Context, dir dataDir) (status, error) {
	pid, err := dir.running()
	if err != nil {
		return status{}, err
	}
	if pid == 0 {
		return status{}, fmt.Errorf("%w on %s: start it with `karmada up --data-dir %s`", errNotRunning, dir.path, dir.path)
	}
	if _, err := os.Stat(dir.karmadaConfig()); errors.Is(err, os.ErrNotExist) {
		return status{}, fmt.Errorf("%w (process %d): %s tells how far it is", errStarting, pid, dir.logFile("karmada"))
	}
	karmada, err := clientcmd.BuildConfigFromFlags("", dir.karmadaConfig())
	if err != nil {
		return status{}, fmt.Errorf("reading kubeconfig of the control plane: %w", err)
	}
	client, err := kubernetes.NewForConfig(karmada)
	if err != nil {
		return status{}, fmt.Errorf("making client of the control plane: %w", err)
	}
	members, err := dir.memberProcesses()
	if err != nil {
		return status{}, err
	}
	found := status{DataDir: dir.path, Kubeconfig: dir.karmadaConfig()}
	self := statusRow{Kind: kindControlPlane, Name: "karmada", State: health(ctx, client), Address: karmada.Host, Process: &pid, Log: dir.logFile("karmada")}
	if e, _, err := readEpoch(ctx, client); err == nil && e.NeedsConfirmation() {
		found.Restored = e.DescribeOrigin()
		self.State += ", " + found.Restored + ", not confirmed"
	}
	clusters, err := listClusters(ctx, karmada)
	found.Components = append([]statusRow{self}, rowsOf(clusters, err == nil, members)...)
	return found, err
}

// memberProcess is a simulated member; pid is 0 while none runs.
type memberProcess struct {
	name, address string
	pid           int
	log           string
}

// memberProcesses are the members that this installation runs.
func (d dataDir) memberProcesses() ([]memberProcess, error) {
	remembered, err := d.readState()
	if err != nil {
		return nil, err
	}
	members := make([]memberProcess, 0, len(remembered.Members))
	for _, name := range remembered.Members {
		pid, err := dataDir{d.member(name)}.running()
		if err != nil {
			return nil, err
		}
		members = append(members, memberProcess{
			name: name, pid: pid, address: standalone.LoopbackURL(remembered.Ports[name]), log: d.logFile(name),
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
	// Restored says where the control plane came from while no user has confirmed its
	// restore, so that nothing is deleted in member clusters.
	Restored   string      `json:"restored,omitempty"`
	Components []statusRow `json:"components"`
}

type statusRow struct {
	// Kind is ControlPlane, Cluster, or Member for a simulated cluster that is not
	// registered.
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	State   string `json:"state"`
	Address string `json:"address"`
	// Process is that of a part of the installation, 0 while none runs.
	Process *int   `json:"process,omitempty"`
	Log     string `json:"log,omitempty"`
}

// title is the row in the column COMPONENT.
func (r statusRow) title() string {
	title := r.Name
	if r.Kind == kindCluster {
		title = "cluster " + title
	}
	switch {
	case r.Process == nil:
		return title
	case *r.Process == 0:
		return title + " (no process)"
	}
	return fmt.Sprintf("%s (process %d)", title, *r.Process)
}

// output is the status in all formats.
func (s status) output() console.Output {
	answer := console.Output{Header: []string{"COMPONENT", "STATE", "ADDRESS", "LOG"}, NarrowColumns: 3, ColumnGap: 3, Object: s}
	for _, row := range s.Components {
		answer.Rows = append(answer.Rows, []string{row.title(), row.State, row.Address, cmp.Or(row.Log, "<none>")})
		answer.Names = append(answer.Names, strings.ToLower(row.Kind)+"/"+row.Name)
	}
	return answer
}

// rowsOf are the clusters, each with its process if it is simulated, and then the
// members that are no clusters. Where the clusters are not known, nothing is said
// about who has joined.
func rowsOf(clusters []clusterv1alpha1.Cluster, known bool, members []memberProcess) []statusRow {
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
			row.Process, row.Log = &members[n].pid, members[n].log
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
		rows = append(rows, statusRow{Kind: kindMember, Name: member.name, State: state, Address: member.address, Process: &member.pid, Log: member.log})
	}
	return rows
}

func health(ctx context.Context, client kubernetes.Interface) string {
	answer, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err != nil {
		return "NotReady: " + err.Error()
	}
	if string(answer) != "ok" {
		return "NotReady"
	}
	return "Ready"
}
