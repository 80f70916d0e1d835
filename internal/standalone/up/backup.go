package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	kubernetesversion "k8s.io/component-base/version"

	"karmada.io/karmada/internal/standalone"
	"karmada.io/karmada/internal/standalone/backup"
	"karmada.io/karmada/internal/version"
)

const (
	// etcdDir is the directory of etcd in that of the control plane.
	etcdDir = "etcd"
	// backupTimeout bounds the snapshot of a large etcd.
	backupTimeout = 10 * time.Minute
	// backupTime is the format of the time in the names of files.
	backupTime = "20060102T150405Z"
)

func backupCommand() *cobra.Command {
	path := defaultDataDir()
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Write everything that the running control plane holds to a file",
		Long: `Write everything that the running control plane holds to a file, and keys and certificates without which it is of no use.
Member clusters go on as they are and are no part of it. The file holds the credentials of every cluster: keep it as safe as the data directory.`,
		Example: `  # A file in this directory, named after the time
  karmada backup
  # A file of that name
  karmada backup /var/backups/karmada.tar.gz`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := dataDirOf(path)
			if err != nil {
				return err
			}
			now := time.Now().UTC()
			file := "karmada-backup-" + now.Format(backupTime) + ".tar.gz"
			if len(args) == 1 {
				file = args[0]
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), backupTimeout)
			defer cancel()
			manifest, err := writeBackup(ctx, dir, file, now)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), file)
			fmt.Fprintf(cmd.ErrOrStderr(), "The backup holds revision %d with %s and %s. It contains the credentials of every cluster: keep it as safe as %s.\n",
				manifest.Revision, counted(manifest.Keys, "object"), counted(len(manifest.Clusters), "cluster"), dir.path)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Directory that was given to up")
	return cmd
}

// atMostOne refuses more than one argument.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return WrongIn(cmd, fmt.Errorf("unexpected argument %q", args[1]))
}

// writeBackup writes a backup of a running installation to a file.
func writeBackup(ctx context.Context, dir dataDir, file string, now time.Time) (backup.Manifest, error) {
	pid, err := dir.running()
	if err != nil {
		return backup.Manifest{}, err
	}
	if pid == 0 {
		return backup.Manifest{}, fmt.Errorf("%w on %s: start it with `karmada up --detach --data-dir %s` and try again", errNotRunning, dir.path, dir.path)
	}
	if _, err := os.Lstat(file); err == nil {
		return backup.Manifest{}, fmt.Errorf("writing %s: %w: name another", file, backup.ErrExists)
	}
	work, err := os.MkdirTemp(filepath.Dir(file), ".karmada-backup-")
	if err != nil {
		return backup.Manifest{}, fmt.Errorf("making a directory beside %s: %w: name a file where you may write", file, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	snapshot := filepath.Join(work, backup.Snapshot)
	saved, err := standalone.SaveSnapshot(ctx, filepath.Join(dir.controlPlane(), etcdDir), snapshot, clustersPrefix)
	if err != nil {
		return backup.Manifest{}, err
	}
	manifest := backup.Manifest{
		Format: backup.Format, Time: now.Truncate(time.Second), Karmada: version.Get().GitVersion,
		Kubernetes: kubernetesversion.DefaultKubeBinaryVersion, Etcd: saved.Version,
		Revision: saved.Revision, Keys: saved.Keys, Hash: saved.Hash, Clusters: saved.Below,
	}
	sources, err := dir.backedUp()
	if err != nil {
		return manifest, err
	}
	return manifest, backup.Write(file, manifest, append([]backup.Source{{Name: backup.Snapshot, Path: snapshot}}, sources...))
}

// backedUp are the files of a data directory that a backup needs besides the snapshot:
// keys and certificates of the control plane, the key that Secrets are encrypted with,
// and the ports that clients know. Logs, and all that belongs to members, stay.
func (d dataDir) backedUp() ([]backup.Source, error) {
	sources := []backup.Source{{Name: filepath.Base(d.stateFile()), Path: d.stateFile()}}
	storage := filepath.Join(d.controlPlane(), etcdDir)
	err := filepath.WalkDir(d.controlPlane(), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == storage:
			return filepath.SkipDir
		case !entry.Type().IsRegular(), strings.HasSuffix(path, ".log"), strings.HasSuffix(path, unfinished):
			return nil
		}
		name, err := filepath.Rel(d.path, path)
		sources = append(sources, backup.Source{Name: name, Path: path})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", d.controlPlane(), errors.Join(err))
	}
	return sources, nil
}
