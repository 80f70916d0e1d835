package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	etcdversion "go.etcd.io/etcd/api/v3/version"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubernetesversion "k8s.io/component-base/version"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/console"
	domain "karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/backup"
)

// epochPrefix is where etcd has the ConfigMaps of the components.
const epochPrefix = "/registry/configmaps/"

// restoreOptions are what `karmada restore` takes.
type restoreOptions struct {
	dataDir, kubeconfig string
	report, confirm     bool
	format              console.Format
}

func restoreCommand() *cobra.Command {
	o := restoreOptions{dataDir: defaultDataDir()}
	cmd := &cobra.Command{
		Use:   "restore FILE | --report | --confirm",
		Short: "Take a control plane that is stopped back to a backup",
		Long: `Take a control plane that is stopped back to a backup. What the data directory held is kept beside it.
After the next up nothing is deleted in member clusters until you confirm: --report shows what differs, --confirm ends the protection.`,
		Example: `  # Back to a backup
  karmada down
  karmada restore karmada-backup-20300501T120000Z.tar.gz
  karmada up --detach
  # What differs in the member clusters
  karmada restore --report
  # Deletions may go on
  karmada restore --confirm`,
		Args: atMostOne,
		RunE: o.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dataDir, "data-dir", o.dataDir, "Directory that was given to up")
	flags.BoolVar(&o.report, "report", false, "Show how member clusters differ from what the restored control plane wants")
	flags.BoolVar(&o.confirm, "confirm", false, "Let the restored control plane delete objects in member clusters again")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "With --report and --confirm: kubeconfig of a control plane that `karmada up` does not run; by default that of the data directory")
	o.format.AddFlag(cmd)
	return cmd
}

func (o *restoreOptions) run(cmd *cobra.Command, args []string) error {
	dir, err := dataDirOf(o.dataDir)
	if err != nil {
		return err
	}
	switch {
	case o.report && o.confirm:
		return WrongIn(cmd, errors.New("--report and --confirm do not go together"))
	case (o.report || o.confirm) && len(args) > 0:
		return WrongIn(cmd, fmt.Errorf("--report and --confirm take no file, such as %q", args[0]))
	case !o.report && !o.confirm && len(args) == 0:
		return WrongIn(cmd, errors.New("name the file of a backup, or give --report or --confirm"))
	case o.kubeconfig != "" && len(args) > 0:
		return WrongIn(cmd, errors.New("--kubeconfig goes with --report and --confirm only: a file is restored into --data-dir"))
	case o.report:
		return o.showReport(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
	case o.confirm:
		return o.confirmRestore(cmd.Context(), dir, cmd.ErrOrStderr())
	}
	silenceLibraries()
	restored, err := restoreBackup(cmd.Context(), dir, args[0], time.Now().UTC())
	if err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "The data directory %s holds the backup of %s again: revision %d, %s.\n", dir.path,
		restored.manifest.Time.Format(time.RFC3339), restored.manifest.Revision, counted(len(restored.manifest.Clusters), "cluster"))
	if restored.kept != "" {
		fmt.Fprintf(out, "What it held before is kept in %s; remove that when you are sure.\n", restored.kept)
	}
	fmt.Fprintf(out, "Start with\n  karmada up --data-dir %s\nNothing is deleted in member clusters until\n  karmada restore --confirm --data-dir %[1]s\n", dir.path)
	return nil
}

// restored is what a restore did.
type restored struct {
	manifest backup.Manifest
	// kept is where the data of before is; empty if there was none.
	kept string
}

// restoreBackup makes a stopped installation one that begins with a backup.
func restoreBackup(ctx context.Context, dir dataDir, file string, now time.Time) (_ restored, err error) {
	opened, err := backup.OpenFile(file)
	if err != nil {
		return restored{}, err
	}
	defer func() { _ = opened.Close() }()
	result := restored{manifest: opened.Manifest}
	if err := result.manifest.CheckReadable(backup.Versions{Kubernetes: kubernetesversion.DefaultKubeBinaryVersion, Etcd: etcdversion.Version}); err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	release, err := dir.takeForRestore()
	if err != nil {
		return result, err
	}
	defer release()
	staging := dir.staging()
	if err := os.RemoveAll(staging); err != nil {
		return result, fmt.Errorf("removing what an interrupted restore left: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := opened.Extract(staging); err != nil {
		return result, err
	}
	if err := stage(ctx, dir, staging, result.manifest, now); err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	result.kept, err = dir.exchange(staging, now)
	return result, err
}

// takeForRestore takes the directory for this process; nothing may run on it, nor on
// those of its members.
func (d dataDir) takeForRestore() (release func(), err error) {
	if err := d.unused(); err != nil {
		return nil, err
	}
	if err := d.create(); err != nil {
		return nil, err
	}
	if release, err = d.lock(); err != nil {
		return nil, err
	}
	members, err := filepath.Glob(d.member("*"))
	for _, path := range members {
		if pid, running := (dataDir{path}).running(); pid != 0 || running != nil {
			err = errors.Join(err, running, d.inUse(pid))
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// stage makes the data of a control plane of the files of a backup.
func stage(ctx context.Context, dir dataDir, staging string, manifest backup.Manifest, now time.Time) error {
	snapshot := filepath.Join(staging, backup.Snapshot)
	saved, err := standalone.InspectSnapshot(snapshot)
	if err != nil {
		return fmt.Errorf("%w: %w", backup.ErrDamaged, err)
	}
	if saved.Hash != manifest.Hash || saved.Revision != manifest.Revision {
		return fmt.Errorf("%w: its snapshot has revision %d and hash %d, and its manifest %d and %d",
			backup.ErrDamaged, saved.Revision, saved.Hash, manifest.Revision, manifest.Hash)
	}
	key, value, err := epochEntry(domain.New(uuid.NewString(), domain.CauseRestored, now, manifest.Time), now)
	if err != nil {
		return err
	}
	next := dataDir{staging}
	if err := os.MkdirAll(next.controlPlane(), 0o700); err != nil {
		return fmt.Errorf("making a directory for the restored data: %w", err)
	}
	if err := standalone.RestoreSnapshot(ctx, standalone.RestoreOptions{
		Snapshot: snapshot, Age: now.Sub(manifest.Time), DataDir: filepath.Join(next.controlPlane(), etcdDir),
		Replaced: filepath.Join(dir.controlPlane(), etcdDir), Put: map[string]string{key: value},
	}); err != nil {
		return err
	}
	return dir.takeOverState(next)
}

// epochEntry is the epoch as the API server stores it: it is there before the first
// request is answered.
func epochEntry(e domain.Epoch, now time.Time) (key, value string, err error) {
	object := epoch.NewConfigMap(e)
	object.UID, object.CreationTimestamp = types.UID(uuid.NewString()), metav1.NewTime(now)
	encoded, err := json.Marshal(object)
	if err != nil {
		return "", "", fmt.Errorf("encoding ConfigMap %s: %w", clusterv1alpha1.EpochName, err)
	}
	return epochPrefix + object.Namespace + "/" + object.Name, string(encoded), nil
}

// takeOverState gives a directory without a state that of the backup, so that clients
// find the same ports. The members that were simulated elsewhere are not here.
func (d dataDir) takeOverState(from dataDir) error {
	if _, err := os.Stat(d.stateFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s, err := from.readState()
	if err != nil {
		return err
	}
	s.Members, s.Pull, s.Registering = nil, nil, nil
	return d.writeState(s)
}

// exchange puts the restored control plane in the place of the present one, which it
// keeps beside it. The two change their names at once, so that a crash leaves one of
// them in its place and removes none.
func (d dataDir) exchange(staging string, now time.Time) (kept string, err error) {
	next := dataDir{staging}.controlPlane()
	if _, err := os.Stat(d.controlPlane()); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(next, d.controlPlane()); err != nil {
			return "", fmt.Errorf("putting the restored data into its place: %w", err)
		}
		return "", nil
	}
	kept = d.controlPlane() + beforeRestore + now.Format(backupTime)
	if _, err := os.Lstat(kept); err == nil {
		return "", fmt.Errorf("keeping the data of before: %s is there already: try again", kept)
	}
	if err := os.Rename(next, kept); err != nil {
		return "", fmt.Errorf("putting the restored data into its place: %w", err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, kept, unix.AT_FDCWD, d.controlPlane(), unix.RENAME_EXCHANGE); err != nil {
		return "", errors.Join(fmt.Errorf("putting the restored data into its place: exchanging %s and %s: %w: name a --data-dir on another file system", kept, d.controlPlane(), err), os.RemoveAll(kept))
	}
	return kept, nil
}
