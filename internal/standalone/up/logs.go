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
	// maxLog is how large a log may become before it begins anew; as much is kept.
	maxLog = 64 << 20
	// logsPeriod is how often the sizes of logs are looked at.
	logsPeriod = 30 * time.Second
	former     = ".old"
)

// openLog opens a log file and keeps the one before it as .old.
func (d dataDir) openLog(name string) (*os.File, error) {
	path := d.logFile(name)
	if err := os.Rename(path, path+former); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keeping the last log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	return file, nil
}

// boundLogs keeps the logs from growing without bound until ctx ends.
func (d dataDir) boundLogs(ctx context.Context, limit int64) {
	ticker := time.NewTicker(logsPeriod)
	defer ticker.Stop()
	for {
		paths, _ := filepath.Glob(d.logFile("*"))
		for _, path := range paths {
			turnLog(path, limit)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// turnLog moves what a log holds to .old once it is over the limit. Those who write it,
// other processes among them, have it open to append, and go on in the same file. A
// copy that the disk has no room for is given up: the log is emptied all the same.
func turnLog(path string, limit int64) {
	if info, err := os.Stat(path); err != nil || info.Size() <= limit {
		return
	}
	if err := copyFile(path, path+former); err != nil {
		_ = os.Remove(path + former)
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
