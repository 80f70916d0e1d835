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
		Use:   "down",
		Short: "Stop what `karmada up` started",
		Example: `  # Stop; a later up finds all objects again
  karmada down
  # Stop and remove the data
  karmada down --purge`,
		Args: NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if force && !purge {
				return Wrong(errors.New("--force: it goes with --purge"))
			}
			dir, err := dataDirOf(path)
			if err != nil {
				return err
			}
			if _, err := os.Stat(dir.path); errors.Is(err, os.ErrNotExist) {
				fmt.Fprintf(cmd.ErrOrStderr(), "There is no %s, nothing to stop.\n", dir.path)
				return nil
			}
			if purge {
				return stopAndPurge(cmd.Context(), dir, force, cmd.ErrOrStderr())
			}
			if err := stop(cmd.Context(), dir); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Karmada is stopped. Its data stays in %s.\n", dir.path)
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "data-dir", path, "Directory that was given to up")
	cmd.Flags().BoolVar(&purge, "purge", false, "Remove the data too, unless clusters that you have joined hold credentials of this control plane")
	cmd.Flags().BoolVar(&force, "force", false, "Remove the data although clusters that you have joined keep credentials of this control plane, or although that cannot be found out")
	return cmd
}

// stopAndPurge stops everything and removes the data. Unless it is forced, it does
// neither while clusters that people have joined hold credentials.
func stopAndPurge(ctx context.Context, dir dataDir, force bool, out io.Writer) error {
	if pid, err := dir.running(); err == nil && pid != 0 && !force {
		// Asked before the stop, for the clusters need the control plane to leave.
		if err := dir.heldNow(ctx); err != nil {
			return err
		}
	}
	if err := stop(ctx, dir); err != nil {
		return err
	}
	others, err := dir.remove(func() error {
		if force {
			return nil
		}
		return dir.heldInStorage(ctx)
	})
	if err != nil {
		return err
	}
	if len(others) > 0 {
		fmt.Fprintf(out, "Karmada is stopped and its data is removed from %s. What else is there stays: %s\n", dir.path, strings.Join(others, " "))
		return nil
	}
	fmt.Fprintf(out, "Karmada is stopped and %s is removed.\n", dir.path)
	return nil
}

// stop ends the process that holds the data directory, and waits for it and for
// its members: those of one that was killed end by themselves.
func stop(ctx context.Context, dir dataDir) error {
	pid, err := dir.running()
	if err != nil {
		return err
	}
	if pid != 0 {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stopping process %d: %w", pid, err)
		}
	}
	err = wait.PollUntilContextTimeout(ctx, stopPollEvery, stopTimeout, true, func(context.Context) (bool, error) {
		var err error
		pid, err = dir.busy()
		return pid == 0, err
	})
	if !wait.Interrupted(err) {
		return err
	}
	return fmt.Errorf("process %d has not stopped within %s: see %s, or end it with `kill -9 %d`, which loses nothing",
		pid, stopTimeout, dir.logFile("karmada"), pid)
}
