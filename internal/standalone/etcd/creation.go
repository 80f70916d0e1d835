package etcd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// memberName is the directory in which etcd stores its data.
	memberName = "member"
	// creationName is the directory in which a new etcd starts for the first time.
	creationName = "creating"
)

// ensureMember creates etcd's data if it does not exist. An etcd whose first start is interrupted may
// never become ready again, because it stores that it exists before it stores that it is a member. So
// a new etcd starts in a directory of its own, which clients never use, and its data is moved into
// place when it is ready. What an interrupted creation left in that directory is removed.
func ensureMember(ctx context.Context, o Options) error {
	member := filepath.Join(o.DataDir, memberName)
	if _, err := os.Lstat(member); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	creation := o
	creation.DataDir, creation.Fsync = filepath.Join(o.DataDir, creationName), true
	if err := os.RemoveAll(creation.DataDir); err != nil {
		return fmt.Errorf("removing an interrupted creation of etcd: %w", err)
	}
	created, err := startEmbedded(ctx, creation)
	if err != nil {
		return err
	}
	created.Close()
	// After a crash of the machine, data that clients have written must be in place.
	if err := errors.Join(os.Rename(filepath.Join(creation.DataDir, memberName), member), syncDir(o.DataDir)); err != nil {
		return fmt.Errorf("moving the data of a new etcd into place: %w", err)
	}
	return os.RemoveAll(creation.DataDir)
}

// syncDir flushes the names in a directory to the disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
