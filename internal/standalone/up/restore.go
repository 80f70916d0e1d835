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
	"karmada.io/karmada/internal/standalone/etcd"
)

// configMapPrefix is the prefix of the etcd keys of ConfigMaps.
const configMapPrefix = "/registry/configmaps/"

// restoreOptions are the flags of `karmada restore`.
type restoreOptions struct {
	dataDir, kubeconfig string
	report, confirm     bool
	format              console.Format
}

func restoreCommand() *cobra.Command {
	o := restoreOptions{dataDir: defaultDataDir()}
	cmd := &cobra.Command{
		Use:   "restore FILE | --report | --confirm",
		Short: "Restore a stopped control plane from a backup",
		Long: `Restore a stopped control plane from a backup. The data of the replaced control plane is kept in the data directory.
After the next karmada up no objects are deleted in member clusters until you confirm the restore. --report shows the differences, --confirm allows deletions again.`,
		Example: `  # Restore a backup
  karmada down
  karmada restore karmada-backup-20300501T120000Z.tar.gz
  karmada up --detach
  # Show differences in the member clusters
  karmada restore --report
  # Allow deletions again
  karmada restore --confirm`,
		Args: atMostOneArgument,
		RunE: o.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.dataDir, "data-dir", o.dataDir, "Data directory of the installation, as given to karmada up")
	flags.BoolVar(&o.report, "report", false, "Show how member clusters differ from the desired state of the restored control plane")
	flags.BoolVar(&o.confirm, "confirm", false, "Confirm the restore, so that the control plane deletes objects in member clusters again")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Kubeconfig of a control plane that `karmada up` does not run, for --report and --confirm. By default the kubeconfig in the data directory")
	o.format.AddFlag(cmd)
	return cmd
}

func (r *restoreOptions) run(cmd *cobra.Command, args []string) error {
	dir, err := parseDataDir(r.dataDir)
	if err != nil {
		return err
	}
	switch {
	case r.report && r.confirm:
		return NewCommandUsageError(cmd, errors.New("--report and --confirm cannot be used together"))
	case (r.report || r.confirm) && len(args) > 0:
		return NewCommandUsageError(cmd, fmt.Errorf("--report and --confirm take no backup file, but %q is given", args[0]))
	case !r.report && !r.confirm && len(args) == 0:
		return NewCommandUsageError(cmd, errors.New("a backup file, --report or --confirm is required"))
	case r.kubeconfig != "" && len(args) > 0:
		return NewCommandUsageError(cmd, errors.New("--kubeconfig can be used with --report and --confirm only: a backup is restored into --data-dir"))
	case r.report:
		return r.showReport(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
	case r.confirm:
		return r.confirmRestore(cmd.Context(), dir, cmd.ErrOrStderr())
	}
	restored, err := restoreBackup(cmd.Context(), dir, args[0], time.Now().UTC())
	if err != nil {
		return err
	}
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "The backup of %[2]s is restored into the data directory %[1]s: revision %[3]d, %[4]s.\n", dir.path,
		restored.manifest.Time.Format(time.RFC3339), restored.manifest.Revision, countOf(len(restored.manifest.Clusters), "cluster"))
	if restored.replacedDir != "" {
		fmt.Fprintf(out, "The replaced control plane is kept in %s. Remove that directory when you no longer need it.\n", restored.replacedDir)
	}
	fmt.Fprintf(out, "Start it with\n  karmada up --data-dir %s\nNo objects are deleted in member clusters until\n  karmada restore --confirm --data-dir %[1]s\n", dir.quoted())
	return nil
}

type restoreResult struct {
	manifest backupManifest
	// replacedDir is the directory that contains the replaced data. It is empty if no data was
	// replaced.
	replacedDir string
}

// restoreBackup restores the backup in file into an installation, which must be stopped.
func restoreBackup(ctx context.Context, dir dataDir, file string, now time.Time) (_ restoreResult, err error) {
	opened, err := openBackupFile(file)
	if err != nil {
		return restoreResult{}, err
	}
	defer func() { _ = opened.Close() }()
	result := restoreResult{manifest: opened.Manifest}
	if err := result.manifest.CheckReadable(backupVersions{Kubernetes: kubernetesversion.DefaultKubeBinaryVersion,
		Etcd: etcdversion.Version}); err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	release, err := dir.lockForRestore(ctx)
	if err != nil {
		return result, err
	}
	defer release()
	staging := dir.restoreStagingDir()
	if err := os.RemoveAll(staging); err != nil {
		return result, fmt.Errorf("removing the files of an interrupted restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(staging)) }()
	if err := opened.Extract(staging); err != nil {
		return result, err
	}
	if err := stageRestore(ctx, dir, staging, result.manifest, now); err != nil {
		return result, fmt.Errorf("%s: %w", file, err)
	}
	result.replacedDir, err = dir.swapControlPlane(staging, now)
	return result, err
}

// lockForRestore locks the directory for this process. It returns an error if a process uses the
// directory or one of its members' directories.
func (d dataDir) lockForRestore(ctx context.Context) (release func(), err error) {
	if err := d.ensureUnused(ctx); err != nil {
		return nil, err
	}
	if err := d.create(); err != nil {
		return nil, err
	}
	if release, err = d.lock(ctx); err != nil {
		return nil, err
	}
	members, err := filepath.Glob(d.memberDir("*"))
	for _, path := range members {
		if pid, running := (dataDir{path}).runningProcess(ctx); pid != 0 || running != nil {
			err = errors.Join(err, running, d.inUseError(pid))
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// stageRestore creates the restored control plane's data in staging from the backup's extracted files.
func stageRestore(ctx context.Context, dir dataDir, staging string, manifest backupManifest, now time.Time) error {
	snapshot := filepath.Join(staging, snapshotName)
	saved, err := etcd.InspectSnapshot(snapshot)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if saved.Hash != manifest.Hash || saved.Revision != manifest.Revision {
		return fmt.Errorf("%w: the snapshot has revision %d and hash %d, but the manifest has %d and %d",
			ErrDamaged, saved.Revision, saved.Hash, manifest.Revision, manifest.Hash)
	}
	key, value, err := epochEntry(domain.New(uuid.NewString(), domain.CauseRestored, now, manifest.Time), now)
	if err != nil {
		return err
	}
	stagedDir := dataDir{staging}
	if err := os.MkdirAll(stagedDir.controlPlaneDir(), 0o700); err != nil {
		return fmt.Errorf("creating a directory for the restored data: %w", err)
	}
	if err := etcd.RestoreSnapshot(ctx, etcd.RestoreOptions{
		Snapshot: snapshot, Age: now.Sub(manifest.Time), DataDir: filepath.Join(stagedDir.controlPlaneDir(), etcdDir),
		ReplacedDir: filepath.Join(dir.controlPlaneDir(), etcdDir), ExtraKeys: map[string]string{key: value},
	}); err != nil {
		return err
	}
	return dir.adoptState(stagedDir)
}

// epochEntry returns the epoch's ConfigMap in the API server's storage format. It is written directly
// to etcd, so that the epoch exists before the first request.
func epochEntry(e domain.Epoch, now time.Time) (key, value string, err error) {
	object := epoch.NewConfigMap(e)
	object.UID, object.CreationTimestamp = types.UID(uuid.NewString()), metav1.NewTime(now)
	encoded, err := json.Marshal(object)
	if err != nil {
		return "", "", fmt.Errorf("encoding ConfigMap %s: %w", clusterv1alpha1.EpochName, err)
	}
	return configMapPrefix + object.Namespace + "/" + object.Name, string(encoded), nil
}

// adoptState copies a backup's state into a directory that has none, so that clients find the same
// ports. It does not copy the backup's simulated members.
func (d dataDir) adoptState(from dataDir) error {
	if _, err := os.Stat(d.stateFile()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s, err := from.readState()
	if err != nil {
		return err
	}
	s.Members, s.PullMembers, s.RegistrationTokens = nil, nil, nil
	return d.writeState(s)
}

// swapControlPlane replaces the control plane's directory with the restored one and keeps the old
// directory beside it. The two directories are exchanged atomically, so that a crash leaves one of them
// in place and loses neither.
func (d dataDir) swapControlPlane(staging string, now time.Time) (replacedDir string, err error) {
	restoredDir := dataDir{staging}.controlPlaneDir()
	if _, err := os.Stat(d.controlPlaneDir()); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(restoredDir, d.controlPlaneDir()); err != nil {
			return "", fmt.Errorf("moving the restored data into place: %w", err)
		}
		return "", nil
	}
	replacedDir = d.controlPlaneDir() + replacedInfix + now.Format(backupTimeFormat)
	if _, err := os.Lstat(replacedDir); err == nil {
		return "", fmt.Errorf("keeping the replaced data: %s exists already: retry", replacedDir)
	}
	if err := os.Rename(restoredDir, replacedDir); err != nil {
		return "", fmt.Errorf("moving the restored data into place: %w", err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, replacedDir, unix.AT_FDCWD, d.controlPlaneDir(), unix.RENAME_EXCHANGE); err != nil {
		return "", errors.Join(fmt.Errorf("moving the restored data into place: exchanging %s and %s: %w: choose a --data-dir on another file system", replacedDir, d.controlPlaneDir(), err), os.RemoveAll(replacedDir))
	}
	return replacedDir, nil
}
