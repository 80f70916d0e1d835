package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
)

func downCommand() *cobra.Command {
	path, purge, force := defaultDataDir(), false, false
	cmd := &cobra.Command{
		Use: "down", SuggestFor: []string{"stop"},
		Short: "Stop all processes of `karmada up`",
		Example: `  # Stop and keep all data for the next karmada up
  karmada down
  # Stop and remove the data
  karmada down --purge`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if force && !purge {
				return NewUsageError(errors.New("--force can be used with --purge only"))
			}
			dir, err := parseDataDir(path)
			if err != nil {
				return err
			}
			if _, err := os.Stat(dir.path); errors.Is(err, os.ErrNotExist) {
				fmt.Fprintf(cmd.ErrOrStderr(), "The directory %s does not exist, nothing to stop.\n", dir.path)
				return nil
			}
			if purge {
				return stopAndPurge(cmd.Context(), dir, force, cmd.ErrOrStderr())
			}
			if err := stopInstallation(cmd.Context(), dir); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Karmada is stopped. Its data is kept in %s.\n", dir.path)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Data directory of the installation, as given to karmada up")
	cmd.Flags().BoolVar(&purge, "purge", false, "Also remove the data, unless clusters that you have joined hold credentials of this control plane")
	cmd.Flags().BoolVar(&force, "force", false, "Remove the data even if clusters that you have joined hold credentials of this control plane, or if that is unknown")
	return cmd
}

// stopAndPurge stops everything and deletes the data. Without force, it returns an error and does
// nothing while clusters that users joined still have credentials of the control plane.
func stopAndPurge(ctx context.Context, dir dataDir, force bool, out io.Writer) error {
	if pid, err := dir.runningProcess(ctx); err == nil && pid != 0 && !force {
		// Check this before stopping, because the user needs the running control plane to remove the
		// clusters that have credentials.
		if err := dir.ensureNoHoldersInAPI(ctx); err != nil {
			return err
		}
	}
	if err := stopInstallation(ctx, dir); err != nil {
		return err
	}
	others, err := dir.remove(ctx, func() error {
		if force {
			return nil
		}
		return dir.ensureNoHoldersInStorage(ctx)
	})
	if err != nil {
		return err
	}
	if len(others) > 0 {
		fmt.Fprintf(out, "Karmada is stopped and its data is removed from %s. Other files in it are kept: %s\n", dir.path,
			strings.Join(others, " "))
		return nil
	}
	fmt.Fprintf(out, "Karmada is stopped and %s is removed.\n", dir.path)
	return nil
}

// stopInstallation stops the process that holds the data directory's lock, and waits until the process
// and its members have ended. If the process was killed, its members end by themselves.
func stopInstallation(ctx context.Context, dir dataDir) error {
	pid, err := dir.runningProcess(ctx)
	if err != nil {
		return err
	}
	if pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping process %d: %w", pid, err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, stopPollInterval, stopTimeout, true, func(ctx context.Context) (bool, error) {
		busy, err := dir.busyProcess(ctx)
		if err != nil {
			return false, err
		}
		pid = busy
		return pid == 0, nil
	})
	if !wait.Interrupted(err) {
		return err
	}
	return fmt.Errorf("process %d has not stopped within %s: see %s, or end it with `kill -9 %d`, no data is lost",
		pid, stopTimeout, dir.logFile("karmada"), pid)
}
