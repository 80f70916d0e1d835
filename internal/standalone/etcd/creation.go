package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// memberName is the directory in which etcd stores its data.
	memberName = "member"
	// creationName is a file that exists in the data directory until etcd is ready for the first
	// time.
	creationName = "member.creating"
)

// beginCreation prepares a data directory for a start. An etcd whose first start is interrupted may
// never become ready again, because it stores that it exists before it stores that it is a member. So
// beginCreation marks a directory without data, and removes the data from a directory whose mark a
// finished start would have removed. This data contains no writes: nobody could use etcd before the
// start was finished. The caller calls finish when etcd is ready, and before any write.
func beginCreation(dataDir string) (finish func() error, err error) {
	member, mark := filepath.Join(dataDir, memberName), filepath.Join(dataDir, creationName)
	_, markErr := os.Lstat(mark)
	_, memberErr := os.Lstat(member)
	switch {
	case markErr == nil:
		err = os.RemoveAll(member)
	case !errors.Is(markErr, fs.ErrNotExist):
		err = markErr
	case memberErr == nil:
		return func() error { return nil }, nil
	case !errors.Is(memberErr, fs.ErrNotExist):
		err = memberErr
	default:
		err = errors.Join(os.WriteFile(mark, nil, 0o600), syncDir(dataDir))
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the data directory of etcd: %w", err)
	}
	return func() error {
		// After a crash of the machine, the mark must not return beside data.
		if err := errors.Join(os.Remove(mark), syncDir(dataDir)); err != nil {
			return fmt.Errorf("finishing the creation of etcd: %w", err)
		}
		return nil
	}, nil
}

// syncDir flushes the names in a directory to the disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
