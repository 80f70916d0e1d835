package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// podLogs is the directory in which kubelet has the logs of Pods: POD/CONTAINER/RESTARTS.log.
const podLogs = "/var/log/pods"

const linkInterval = time.Second

// keepLogs links the logs of Pods into a directory of the same file system until ctx ends, because
// kubelet removes the logs of a Pod together with the Pod.
func keepLogs(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("creating the directory of logs: %w", err)
	}
	go func() {
		ticker := time.NewTicker(linkInterval)
		defer ticker.Stop()
		for {
			// A log that vanishes meanwhile is retried, and then is no longer listed.
			_ = linkLogs(from, to)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return nil
}

// linkLogs links the logs that have no link yet.
func linkLogs(from, to string) error {
	logs, err := filepath.Glob(filepath.Join(from, "*", "*", "*.log"))
	if err != nil {
		return err
	}
	var problems []error
	for _, log := range logs {
		name, err := filepath.Rel(from, log)
		if err != nil {
			return err
		}
		err = os.Link(log, filepath.Join(to, strings.ReplaceAll(name, string(filepath.Separator), "_")))
		if !errors.Is(err, fs.ErrExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// copyLogs copies the linked logs to a directory that outlives the node.
func copyLogs(from, to string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copying the logs of Pods: %w", err)
	}
	return nil
}
