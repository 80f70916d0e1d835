package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	// maxLogBytes is the size at which a log is rotated, in bytes. The rotated file can have the same
	// size.
	maxLogBytes = 64 << 20
	// logCheckPeriod is the interval at which the logs' sizes are checked.
	logCheckPeriod = 30 * time.Second
	oldLogSuffix   = ".old"
)

// openLog opens a log file and keeps the previous file with the suffix .old.
func (d dataDir) openLog(name string) (*os.File, error) {
	path := d.logFile(name)
	if err := os.Rename(path, path+oldLogSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("renaming the last log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	return file, nil
}

// rotateLogs limits the logs' sizes to limit bytes until ctx ends.
func (d dataDir) rotateLogs(ctx context.Context, limit int64) {
	ticker := time.NewTicker(logCheckPeriod)
	defer ticker.Stop()
	for {
		paths, _ := filepath.Glob(d.logFile("*"))
		for _, path := range paths {
			rotateLog(path, limit)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// rotateLog copies a log that exceeds the limit to a file with the suffix .old, and truncates the log.
// It does not replace the log, because several processes have opened the log for appending and continue
// to write to the same file. If the disk is too full for the copy, rotateLog truncates the log without
// a copy.
func rotateLog(path string, limit int64) {
	if info, err := os.Stat(path); err != nil || info.Size() <= limit {
		return
	}
	if err := copyFile(path, path+oldLogSuffix); err != nil {
		_ = os.Remove(path + oldLogSuffix)
	}
	_ = os.Truncate(path, 0)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
