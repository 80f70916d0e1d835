package up

import (
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
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/standalone"
)

const (
	// clustersPrefix is the prefix of the etcd keys of Clusters.
	clustersPrefix = "/registry/" + clusterv1alpha1.GroupName + "/clusters/"
	// purgeTimeout limits each attempt to list the registered clusters.
	purgeTimeout = 30 * time.Second
	// maxStderrBytes limits how much of a failed process's stderr an error contains. It applies
	// separately to the beginning and the end of the output.
	maxStderrBytes = 1 << 10
)

// credentialsHeldError means that clusters that are not members of this installation have credentials
// of its control plane.
type credentialsHeldError struct {
	dir dataDir
	// replacedDir is the directory of the replaced control plane that stores these clusters. It is
	// empty if the current control plane stores them.
	replacedDir string
	holders     registration.CredentialHolders
}

// Error implements error.
func (c *credentialsHeldError) Error() string {
	subject, removal, followUp := "you have joined", "Remove each first", ""
	if c.replacedDir != "" {
		subject = "the control plane in " + c.replacedDir + " had joined, before a restore replaced it,"
		removal, followUp = "Clean up in each first", fmt.Sprintf(", then remove %s", c.replacedDir)
	}
	return fmt.Sprintf("not removing %s: %s that %s would keep the credentials of this control plane: %s. "+
		"%s, while `karmada up --data-dir %s` runs: %s%s. Without the kubeconfig of the cluster, its credentials stay valid there. "+
		"With --force the data is removed anyway; the clusters keep the service accounts of Karmada with their roles and bindings, agents, and propagated objects",
		c.dir.path, countOf(c.holders.Count(), "cluster"), subject, c.holders, removal, c.dir.quoted(), strings.Join(c.leaveCommands(), ", "),
		followUp)
}

// leaveCommands returns, for each mode, the command that removes one of the clusters from the control
// plane. If a replaced control plane stores the clusters, the command contains --force, because the
// restored control plane may not contain a Cluster with that name.
func (c *credentialsHeldError) leaveCommands() []string {
	var flags []string
	if c.replacedDir != "" {
		flags = []string{"--force"}
	}
	commands := c.holders.LeaveCommands("karmadactl", flags...)
	for i, command := range commands {
		commands[i] = "`" + command + "`"
	}
	return commands
}

// ensureNoCredentialHolders returns an error if clusters that are not members of this installation have
// credentials. Members are identified by their address. A pull mode member without an address is
// identified by its name.
func (d dataDir) ensureNoCredentialHolders(clusters []clusterv1alpha1.Cluster, members map[string]string) error {
	holders := registration.NewCredentialHolders(clusters, func(cluster *clusterv1alpha1.Cluster) bool {
		return slices.Contains(valuesOf(members), cluster.Spec.APIEndpoint) ||
			cluster.Spec.APIEndpoint == "" && members[cluster.Name] != ""
	})
	if holders.Count() == 0 {
		return nil
	}
	return &credentialsHeldError{dir: d, holders: holders}
}

func valuesOf(addresses map[string]string) []string {
	values := make([]string, 0, len(addresses))
	for _, value := range addresses {
		values = append(values, value)
	}
	return values
}

// memberAddresses returns the addresses of all members whose data is in the directory, including
// members that are no longer started.
func (d dataDir) memberAddresses() (map[string]string, error) {
	state, err := d.readState()
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for name, port := range state.Ports {
		if info, err := os.Stat(d.memberDir(name)); err == nil && info.IsDir() {
			addresses[name] = standalone.LoopbackURL(port)
		}
	}
	return addresses, nil
}

// clusterReader returns a command that prints the Clusters in the storage of the control plane in dir.
type clusterReader func(ctx context.Context, dir string) *exec.Cmd

// ensureNoHoldersInAPI returns an error if the running control plane contains clusters that have its
// credentials. If the control plane does not respond, it returns nil, because the caller reads the
// storage after stopping the control plane.
func (d dataDir) ensureNoHoldersInAPI(ctx context.Context) error {
	listCtx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	members, err := d.memberAddresses()
	if err != nil {
		return err
	}
	karmada, err := clientcmd.BuildConfigFromFlags("", d.karmadaKubeconfig())
	if err != nil {
		return nil // the control plane is still starting
	}
	clusters, err := listClusters(listCtx, karmada)
	if err != nil {
		return nil // the caller reads the storage after the stop
	}
	if err := d.ensureNoCredentialHolders(clusters, members); err != nil {
		return err
	}
	return d.ensureNoHoldersInReplaced(ctx, newStoredClustersProcess)
}

// ensureNoHoldersInStorage does the same as ensureNoHoldersInAPI for a stopped control plane, whose
// storage it reads. The caller must hold the directory's lock.
func (d dataDir) ensureNoHoldersInStorage(ctx context.Context) error {
	return d.ensureNoHoldersInDump(ctx, newStoredClustersProcess)
}

// ensureNoHoldersInDump does the same as ensureNoHoldersInStorage, with the given reader.
func (d dataDir) ensureNoHoldersInDump(ctx context.Context, read clusterReader) error {
	if err := d.ensureNoHoldersInDir(ctx, d.controlPlaneDir(), read); err != nil {
		return err
	}
	return d.ensureNoHoldersInReplaced(ctx, read)
}

// ensureNoHoldersInReplaced reads the storage of control planes that a restore replaced, because only
// this storage contains clusters that joined after the backup.
func (d dataDir) ensureNoHoldersInReplaced(ctx context.Context, read clusterReader) error {
	replaced, err := d.replacedControlPlanes()
	if err != nil {
		return err
	}
	for _, dir := range replaced {
		err := d.ensureNoHoldersInDir(ctx, dir, read)
		if held := (*credentialsHeldError)(nil); errors.As(err, &held) {
			held.replacedDir = dir
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ensureNoHoldersInDir returns an error if clusters have credentials of the control plane in dir.
func (d dataDir) ensureNoHoldersInDir(ctx context.Context, dir string, read clusterReader) error {
	clusters, err := readStoredClusters(ctx, dir, read)
	if err != nil {
		return fmt.Errorf("not removing %s, because it is unknown which clusters hold credentials of the control plane in %s: %w. "+
			"If only the members of this installation hold them, add --force", d.path, dir, err)
	}
	members, err := d.memberAddresses()
	if err != nil {
		return err
	}
	return d.ensureNoCredentialHolders(clusters, members)
}

func readStoredClusters(ctx context.Context, dir string, read clusterReader) ([]clusterv1alpha1.Cluster, error) {
	switch has, err := standalone.HasEtcdData(dir); {
	case err != nil:
		return nil, err
	case !has:
		return nil, nil // no cluster was ever joined
	}
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	out, err := read(ctx, dir).Output()
	if err != nil {
		return nil, fmt.Errorf("reading the storage of the control plane: %w", errors.Join(ctx.Err(), withStderr(err)))
	}
	var values [][]byte
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("decoding the stored Clusters of the control plane: %w", err)
	}
	return parseClusters(values)
}

// withStderr adds a process's stderr output to its error: the beginning, which contains the cause of a
// panic, and the end.
func withStderr(err error) error {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	text := strings.TrimSpace(string(exit.Stderr))
	if len(text) > 2*maxStderrBytes {
		text = text[:maxStderrBytes] + " ... " + text[len(text)-maxStderrBytes:]
	}
	return fmt.Errorf("%w: %s", err, text)
}

const storedClustersName = "stored-clusters"

// newStoredClustersProcess returns the command that runs storedClustersCommand. This must be a separate
// process, because etcd ends its process if etcd's files are damaged.
func newStoredClustersProcess(ctx context.Context, dir string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(ctx, self, storedClustersName, "--dir", dir)
}

func storedClustersCommand() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: storedClustersName, Hidden: true, Args: NoArguments,
		Short: "Print the Clusters in the storage of a stopped control plane; started by `karmada down --purge`",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), purgeTimeout)
			defer cancel()
			values, err := standalone.ReadEtcdValues(ctx, dir, clustersPrefix)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(values); err != nil {
				return fmt.Errorf("printing the stored Clusters: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "Directory of the control plane")
	return cmd
}

var errNotCluster = errors.New("the value is not a Cluster")

func parseClusters(values [][]byte) ([]clusterv1alpha1.Cluster, error) {
	clusters := make([]clusterv1alpha1.Cluster, len(values))
	for i, value := range values {
		if err := json.Unmarshal(value, &clusters[i]); err != nil {
			return nil, fmt.Errorf("decoding a stored Cluster: %w", err)
		}
		if clusters[i].Name == "" {
			return nil, fmt.Errorf("decoding a stored Cluster: %w", errNotCluster)
		}
	}
	return clusters, nil
}
