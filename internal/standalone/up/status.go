package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
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
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what `karmada up` runs, where, and what to type",
		Args:  NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDirOf(path)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			return showStatus(ctx, dir, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Directory that was given to up")
	return cmd
}

func showStatus(ctx context.Context, dir dataDir, out io.Writer) error {
	pid, err := dir.running()
	if err != nil {
		return err
	}
	if pid == 0 {
		return fmt.Errorf("%w on %s: start it with `karmada up --data-dir %s`", errNotRunning, dir.path, dir.path)
	}
	if _, err := os.Stat(dir.karmadaConfig()); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w (process %d): %s tells how far it is", errStarting, pid, dir.logFile("karmada"))
	}
	karmada, err := clientcmd.BuildConfigFromFlags("", dir.karmadaConfig())
	if err != nil {
		return fmt.Errorf("reading kubeconfig of the control plane: %w", err)
	}
	client, err := kubernetes.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("making client of the control plane: %w", err)
	}
	members, err := dir.memberProcesses()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tSTATE\tADDRESS")
	fmt.Fprintf(table, "karmada (process %d)\t%s\t%s\n", pid, health(ctx, client), karmada.Host)
	clusters, err := listClusters(ctx, karmada)
	for _, row := range rowsOf(clusters, err == nil, members) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", row.name, row.state, row.address)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\n", dir.karmadaConfig())
	return err
}

// memberProcess is a simulated member; pid is 0 while none runs.
type memberProcess struct {
	name, address string
	pid           int
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
		members = append(members, memberProcess{name: name, pid: pid, address: standalone.LoopbackURL(remembered.Ports[name])})
	}
	return members, nil
}

type statusRow struct{ name, state, address string }

// rowsOf are the clusters, each with its process if it is simulated, and then the
// members that are no clusters. Where the clusters are not known, nothing is said
// about who has joined.
func rowsOf(clusters []clusterv1alpha1.Cluster, known bool, members []memberProcess) []statusRow {
	var rows []statusRow
	joined := map[string]bool{}
	for i := range clusters {
		cluster := &clusters[i]
		row := statusRow{name: "cluster " + cluster.Name, state: "NotReady", address: cluster.Spec.APIEndpoint}
		if domain.Ready(cluster) {
			row.state = "Ready"
		}
		if n := slices.IndexFunc(members, func(m memberProcess) bool { return m.address == cluster.Spec.APIEndpoint }); n >= 0 {
			joined[members[n].name] = true
			row.name += processText(members[n].pid)
		}
		rows = append(rows, row)
	}
	for _, member := range members {
		if joined[member.name] {
			continue
		}
		state := "Not joined"
		if !known {
			state = "Unknown"
		}
		rows = append(rows, statusRow{name: member.name + processText(member.pid), state: state, address: member.address})
	}
	return rows
}

func processText(pid int) string {
	if pid == 0 {
		return " (no process)"
	}
	return fmt.Sprintf(" (process %d)", pid)
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
