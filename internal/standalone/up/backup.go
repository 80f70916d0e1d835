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
	"karmada.io/karmada/internal/version"
)

const (
	// etcdDir is the name of etcd's directory in the control plane's directory.
	etcdDir = "etcd"
	// backupTimeout limits the duration of a backup. It is sufficient for a large etcd.
	backupTimeout = 10 * time.Minute
	// backupTimeFormat is the format of times in file names.
	backupTimeFormat = "20060102T150405Z"
)

func backupCommand() *cobra.Command {
	path := defaultDataDir()
	cmd := &cobra.Command{
		Use:   "backup [FILE]",
		Short: "Back up the running control plane to a file",
		Long: `Back up all objects of the running control plane to a file, with the keys and certificates that a restore needs.
Member clusters keep running and are not part of the backup. The file contains the credentials of every cluster: protect it like the data directory.`,
		Example: `  # Write a file in the current directory, named after the time
  karmada backup
  # Write a file of the given name
  karmada backup /var/backups/karmada.tar.gz`,
		Args: atMostOneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := parseDataDir(path)
			if err != nil {
				return err
			}
			now := time.Now().UTC()
			file := "karmada-backup-" + now.Format(backupTimeFormat) + ".tar.gz"
			if len(args) == 1 {
				file = args[0]
			}
			ctx, stop := withStopSignals(cmd.Context())
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, backupTimeout)
			defer cancel()
			manifest, err := writeBackup(ctx, dir, file, now)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), file)
			fmt.Fprintf(cmd.ErrOrStderr(), "The backup contains revision %d with %s and %s. It contains the credentials of every cluster: protect it like %s.\n",
				manifest.Revision, countOf(manifest.Keys, "object"), countOf(len(manifest.Clusters), "cluster"), dir.path)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Data directory of the installation, as given to karmada up")
	return cmd
}

// atMostOneArgument returns a usage error if there is more than one argument.
func atMostOneArgument(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return NewCommandUsageError(cmd, fmt.Errorf("unexpected argument %q", args[1]))
}

// writeBackup writes a backup of a running installation to file.
func writeBackup(ctx context.Context, dir dataDir, file string, now time.Time) (backupManifest, error) {
	pid, err := dir.runningProcess(ctx)
	if err != nil {
		return backupManifest{}, err
	}
	if pid == 0 {
		return backupManifest{}, fmt.Errorf("%w on %s: start it with `karmada up --detach --data-dir %s` and retry", errNotRunning, dir.path,
			dir.quoted())
	}
	if _, err := os.Lstat(file); err == nil {
		return backupManifest{}, fmt.Errorf("writing %s: %w: choose another name", file, ErrExists)
	}
	work, err := os.MkdirTemp(filepath.Dir(file), ".karmada-backup-")
	if err != nil {
		return backupManifest{}, fmt.Errorf("creating a temporary directory beside %s: %w: choose a file in a writable directory", file, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	snapshot := filepath.Join(work, snapshotName)
	saved, err := standalone.SaveSnapshot(ctx, dir.controlPlaneDir(), snapshot, clustersPrefix)
	if err != nil {
		return backupManifest{}, err
	}
	manifest := backupManifest{
		Format: backupFormatVersion, Time: now.Truncate(time.Second), Karmada: version.Get().GitVersion,
		Kubernetes: kubernetesversion.DefaultKubeBinaryVersion, Etcd: saved.Version,
		Revision: saved.Revision, Keys: saved.Keys, Hash: saved.Hash, Clusters: saved.NamesBelowPrefix,
	}
	sources, err := dir.backupSources()
	if err != nil {
		return manifest, err
	}
	return manifest, writeBackupFile(file, manifest, append([]backupSource{{Name: snapshotName, Path: snapshot}}, sources...))
}

// backupSources returns the files in the data directory that a backup contains in addition to the
// snapshot: the control plane's keys and certificates, the encryption key for Secrets, and the state
// file, which stores the ports in users' kubeconfigs. A backup does not contain logs and members' data.
func (d dataDir) backupSources() ([]backupSource, error) {
	sources := []backupSource{{Name: filepath.Base(d.stateFile()), Path: d.stateFile()}}
	storage := filepath.Join(d.controlPlaneDir(), etcdDir)
	err := filepath.WalkDir(d.controlPlaneDir(), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == storage:
			return filepath.SkipDir
		case !entry.Type().IsRegular(), strings.HasSuffix(path, ".log"), strings.HasSuffix(path, unfinishedSuffix):
			return nil
		}
		name, err := filepath.Rel(d.path, path)
		sources = append(sources, backupSource{Name: name, Path: path})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the files of %s: %w", d.controlPlaneDir(), errors.Join(err))
	}
	return sources, nil
}
