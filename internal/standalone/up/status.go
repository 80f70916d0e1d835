package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	domain "karmada.io/karmada/internal/domain/cluster"
)

const statusTimeout = 10 * time.Second

// errNotRunning gives `karmada status` its exit code; the text was printed.
var errNotRunning = errors.New("karmada is not running")

func statusCommand() *cobra.Command {
	path := defaultDataDir()
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what `karmada up` runs, where, and what to type",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			absolute, err := filepath.Abs(path)
			if err != nil {
				return fmt.Errorf("finding data directory: %w", err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
			defer cancel()
			return showStatus(ctx, dataDir{absolute}, cmd.OutOrStdout())
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
	karmada, err := clientcmd.BuildConfigFromFlags("", dir.karmadaConfig())
	if err != nil {
		return fmt.Errorf("reading kubeconfig of the control plane (is it still starting?): %w", err)
	}
	client, err := kubernetes.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("making client of the control plane: %w", err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tSTATE\tADDRESS")
	fmt.Fprintf(table, "karmada (process %d)\t%s\t%s\n", pid, health(ctx, client), karmada.Host)
	clusters, err := listClusters(ctx, karmada)
	for i := range clusters {
		state := "NotReady"
		if domain.Ready(&clusters[i]) {
			state = "Ready"
		}
		fmt.Fprintf(table, "cluster %s\t%s\t%s\n", clusters[i].Name, state, clusters[i].Spec.APIEndpoint)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\n", dir.karmadaConfig())
	return err
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
