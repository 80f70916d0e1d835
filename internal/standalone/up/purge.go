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
	"karmada.io/karmada/internal/standalone"
)

const (
	// clustersPrefix is where the server of the Cluster API stores Clusters.
	clustersPrefix = "/registry/cluster.karmada.io/clusters/"
	// purgeTimeout bounds each way to find out which clusters are joined.
	purgeTimeout = 30 * time.Second
	// maxHeldNames bounds the clusters that an error lists.
	maxHeldNames = 10
	// maxSaid bounds how much of the beginning, and of the end, of what a failed process
	// wrote an error has.
	maxSaid = 1 << 10
)

// heldError says that clusters which this installation has not made hold credentials of
// its control plane.
type heldError struct {
	dir dataDir
	// replaced is the directory of a control plane that a restore replaced, if that one
	// names them; empty for the present one.
	replaced string
	// push and pull are their names, by mode.
	push, pull []string
}

// Error implements error.
func (e *heldError) Error() string {
	found, removal, next := "you have joined", "Remove each first", ""
	if e.replaced != "" {
		found = "the control plane in " + e.replaced + " had joined, before a restore replaced it,"
		removal, next = "Clean up in each first", fmt.Sprintf(", then remove %s", e.replaced)
	}
	return fmt.Sprintf("not removing %s: %s that %s would keep the credentials of this control plane: %s. "+
		"%s, while `karmada up --data-dir %s` runs: %s%s. Without the kubeconfig of the cluster its credentials stay valid there. "+
		"With --force the data is removed all the same; in the clusters stay service accounts with the rights that Karmada had, their roles and bindings, agents, and what was propagated",
		e.dir.path, counted(len(e.push)+len(e.pull), "cluster"), found, listOf(e.push, e.pull), removal, e.dir.path, strings.Join(e.remedies(), ", "), next)
}

// remedies are commands that end the membership of one cluster of each mode. A control
// plane that was restored may have no Cluster of that name, which needs --force.
func (e *heldError) remedies() (commands []string) {
	force := ""
	if e.replaced != "" {
		force = " --force"
	}
	for _, one := range []struct {
		verb  string
		names []string
	}{{"unjoin", e.push}, {"unregister", e.pull}} {
		if len(one.names) > 0 {
			commands = append(commands, fmt.Sprintf("`karmadactl %s %s%s --cluster-kubeconfig=<kubeconfig of %[2]s>`", one.verb, one.names[0], force))
		}
	}
	return commands
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

// reader is a command that prints what the control plane in a directory has stored.
type reader func(ctx context.Context, dir string) *exec.Cmd

// heldNow asks the control plane, which runs, for the clusters that hold its
// credentials. If it does not answer nothing is known: its storage is read later.
func (d dataDir) heldNow(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	members, err := d.memberAddresses()
	if err != nil {
		return err
	}
	karmada, err := clientcmd.BuildConfigFromFlags("", d.karmadaConfig())
	if err != nil {
		return nil // It is still starting.
	}
	clusters, err := listClusters(asking, karmada)
	if err != nil {
		return nil // As said above.
	}
	if err := d.holders(clusters, members); err != nil {
		return err
	}
	return d.heldInReplaced(ctx, readerCommand)
}

// heldInStorage reads from the storage of a control plane that does not run which
// clusters hold its credentials. The caller holds the lock of the directory.
func (d dataDir) heldInStorage(ctx context.Context) error {
	return d.heldAsRead(ctx, readerCommand)
}

// heldAsRead does so by a reader.
func (d dataDir) heldAsRead(ctx context.Context, read reader) error {
	if err := d.heldIn(ctx, d.controlPlane(), read); err != nil {
		return err
	}
	return d.heldInReplaced(ctx, read)
}

// heldInReplaced reads the same from the storage of control planes that a restore
// replaced: a cluster that joined after the backup is in no other.
func (d dataDir) heldInReplaced(ctx context.Context, read reader) error {
	replaced, err := d.replaced()
	if err != nil {
		return err
	}
	for _, dir := range replaced {
		err := d.heldIn(ctx, dir, read)
		if held := (*heldError)(nil); errors.As(err, &held) {
			held.replaced = dir
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// heldIn reads which clusters hold credentials of the control plane in a directory.
func (d dataDir) heldIn(ctx context.Context, dir string, read reader) error {
	clusters, err := storedClusters(ctx, dir, read)
	if err != nil {
		return fmt.Errorf("not removing %s, for it cannot be found out which clusters hold credentials of the control plane in %s: %w. "+
			"If you know that none does but its own members, add --force", d.path, dir, err)
	}
	members, err := d.memberAddresses()
	if err != nil {
		return err
	}
	return d.holders(clusters, members)
}

func storedClusters(ctx context.Context, dir string, read reader) ([]clusterv1alpha1.Cluster, error) {
	switch has, err := standalone.HasStorage(dir); {
	case err != nil:
		return nil, err
	case !has:
		return nil, nil // It never got so far as to join a cluster.
	}
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	out, err := read(ctx, dir).Output()
	if err != nil {
		return nil, fmt.Errorf("reading the storage of the control plane: %w", errors.Join(ctx.Err(), withStderr(err)))
	}
	var values [][]byte
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("reading what is stored of the control plane: %w", err)
	}
	return parseClusters(values)
}

// withStderr adds to the error of a process what it wrote to stderr: its beginning, where
// a panic says its cause, and its end.
func withStderr(err error) error {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	text := strings.TrimSpace(string(exit.Stderr))
	if len(text) > 2*maxSaid {
		text = text[:maxSaid] + " ... " + text[len(text)-maxSaid:]
	}
	return fmt.Errorf("%w: %s", err, text)
}

const readerName = "stored-clusters"

// readerCommand runs readerCommandLine: an etcd that finds its files damaged ends its
// process, which must not be this one.
func readerCommand(ctx context.Context, dir string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(ctx, self, readerName, "--dir", dir)
}

func readerCommandLine() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use: readerName, Hidden: true, Args: NoArguments,
		Short: "Print the Clusters in the storage of a control plane that does not run; `karmada down --purge` starts this",
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), purgeTimeout)
			defer cancel()
			values, err := standalone.ReadStored(ctx, dir, clustersPrefix)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(cmd.OutOrStdout()).Encode(values); err != nil {
				return fmt.Errorf("printing what is stored: %w", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "Directory of the control plane")
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
