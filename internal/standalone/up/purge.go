package up

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/standalone"
)

const (
	// clustersPrefix is where the server of the Cluster API stores Clusters.
	clustersPrefix = "/registry/cluster.karmada.io/clusters/"
	// purgeTimeout bounds each way to find out which clusters are joined.
	purgeTimeout = 30 * time.Second
	// maxHeldNames bounds the clusters that an error lists.
	maxHeldNames = 10
)

// heldError says that clusters which this installation has not made hold credentials of
// its control plane.
type heldError struct {
	dir dataDir
	// push and pull are their names, by mode.
	push, pull []string
}

// Error implements error.
func (e *heldError) Error() string {
	var remedies []string
	for verb, names := range map[string][]string{"karmadactl unjoin": e.push, "karmadactl unregister": e.pull} {
		if len(names) > 0 {
			remedies = append(remedies, fmt.Sprintf("`%s %s`", verb, names[0]))
		}
	}
	slices.Sort(remedies)
	return fmt.Sprintf("not removing %s: %s that you have joined would keep the credentials of this control plane: %s. "+
		"Let each leave first, while `karmada up --data-dir %[1]s` runs: %[4]s. "+
		"With --force the data is removed all the same; in the clusters stay service accounts with the rights that Karmada had, their roles and bindings, agents, and what was propagated",
		e.dir.path, counted(len(e.push)+len(e.pull), "cluster"), listOf(e.push, e.pull), strings.Join(remedies, ", "))
}

func listOf(push, pull []string) string {
	var all []string
	for _, name := range push {
		all = append(all, name+" (push)")
	}
	for _, name := range pull {
		all = append(all, name+" (pull)")
	}
	slices.Sort(all)
	if more := len(all) - maxHeldNames; more > 0 {
		all = append(all[:maxHeldNames], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}

// holders returns an error if clusters hold credentials that are not members of this
// installation. Members are known by the address that only they can have; one whose
// agent has not said its address yet is known by its name.
func (d dataDir) holders(clusters []clusterv1alpha1.Cluster, members map[string]string) error {
	held := &heldError{dir: d}
	for i := range clusters {
		cluster := &clusters[i]
		own := slices.Contains(mapValues(members), cluster.Spec.APIEndpoint) ||
			cluster.Spec.APIEndpoint == "" && members[cluster.Name] != ""
		switch {
		case own:
		case cluster.Spec.SyncMode == clusterv1alpha1.Pull:
			held.pull = append(held.pull, cluster.Name)
		default:
			held.push = append(held.push, cluster.Name)
		}
	}
	if len(held.push)+len(held.pull) == 0 {
		return nil
	}
	slices.Sort(held.push)
	slices.Sort(held.pull)
	return held
}

func mapValues(of map[string]string) []string {
	values := make([]string, 0, len(of))
	for _, value := range of {
		values = append(values, value)
	}
	return values
}

// memberAddresses are the addresses of all members that the directory has data of,
// also of those that are no longer started.
func (d dataDir) memberAddresses() (map[string]string, error) {
	remembered, err := d.readState()
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for name, port := range remembered.Ports {
		if info, err := os.Stat(d.member(name)); err == nil && info.IsDir() {
			addresses[name] = standalone.LoopbackURL(port)
		}
	}
	return addresses, nil
}

// heldNow asks the control plane, which runs, for the clusters that hold its
// credentials. If it does not answer nothing is known: its storage is read later.
func (d dataDir) heldNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	members, err := d.memberAddresses()
	if err != nil {
		return err
	}
	karmada, err := clientcmd.BuildConfigFromFlags("", d.karmadaConfig())
	if err != nil {
		return nil // It is still starting.
	}
	clusters, err := listClusters(ctx, karmada)
	if err != nil {
		return nil // As said above.
	}
	return d.holders(clusters, members)
}

// heldInStorage reads from the storage of a control plane that does not run which
// clusters hold its credentials. The caller holds the lock of the directory.
func (d dataDir) heldInStorage(ctx context.Context) error {
	return d.heldAsRead(ctx, d.readerCommand())
}

// heldAsRead does so by a command that prints what is stored.
func (d dataDir) heldAsRead(ctx context.Context, reader *exec.Cmd) error {
	clusters, err := d.storedClusters(ctx, reader)
	if err != nil {
		return fmt.Errorf("not removing %s, for it cannot be found out which clusters hold credentials of its control plane: %w. "+
			"If you know that none does but its own members, add --force", d.path, err)
	}
	members, err := d.memberAddresses()
	if err != nil {
		return err
	}
	return d.holders(clusters, members)
}

func (d dataDir) storedClusters(ctx context.Context, reader *exec.Cmd) ([]clusterv1alpha1.Cluster, error) {
	switch has, err := standalone.HasStorage(d.controlPlane()); {
	case err != nil:
		return nil, err
	case !has:
		return nil, nil // It never got so far as to join a cluster.
	}
	var out bytes.Buffer
	reader.Stdout = &out
	if err := reader.Start(); err != nil {
		return nil, fmt.Errorf("starting to read the storage of the control plane: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = reader.Process.Kill() })
	defer stop()
	limit := time.AfterFunc(purgeTimeout, func() { _ = reader.Process.Kill() })
	defer limit.Stop()
	if err := reader.Wait(); err != nil {
		return nil, fmt.Errorf("reading the storage of the control plane: %w", err)
	}
	var values [][]byte
	if err := json.Unmarshal(out.Bytes(), &values); err != nil {
		return nil, fmt.Errorf("reading what is stored of the control plane: %w", err)
	}
	return parseClusters(values)
}

const readerName = "stored-clusters"

// readerCommand runs readerCommandLine: an etcd that finds its files damaged ends its
// process, which must not be this one.
func (d dataDir) readerCommand() *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.Command(self, readerName, "--data-dir", d.path)
}

func readerCommandLine() *cobra.Command {
	path := ""
	cmd := &cobra.Command{
		Use: readerName, Hidden: true, Args: NoArguments,
		Short: "Print the Clusters in the storage of a control plane that does not run; `karmada down --purge` starts this",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), purgeTimeout)
			defer cancel()
			values, err := standalone.ReadStored(ctx, dataDir{path}.controlPlane(), clustersPrefix)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(values); err != nil {
				return fmt.Errorf("printing what is stored: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", "", "Directory that was given to up")
	return cmd
}

var errNoCluster = errors.New("it is no Cluster")

func parseClusters(values [][]byte) ([]clusterv1alpha1.Cluster, error) {
	clusters := make([]clusterv1alpha1.Cluster, len(values))
	for i, value := range values {
		if err := json.Unmarshal(value, &clusters[i]); err != nil {
			return nil, fmt.Errorf("reading a stored Cluster: %w", err)
		}
		if clusters[i].Name == "" {
			return nil, fmt.Errorf("reading a stored Cluster: %w", errNoCluster)
		}
	}
	return clusters, nil
}
