package layout

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// files are what a volume holds, by path.
type files map[string]file

type file struct {
	data []byte
	mode os.FileMode
}

func (f files) add(path string, data []byte, mode os.FileMode) error {
	if !filepath.IsLocal(path) || strings.HasPrefix(path, "..") {
		return fmt.Errorf("path %q: %w", path, errPath)
	}
	// The program and its kubelet are the same user, who must be able to read it.
	f[filepath.Clean(path)] = file{data: data, mode: mode | 0o400}
	return nil
}

func (f files) equal(other files) bool {
	if len(f) != len(other) {
		return false
	}
	for path, have := range f {
		want, ok := other[path]
		if !ok || want.mode != have.mode || !bytes.Equal(want.data, have.data) {
			return false
		}
	}
	return true
}

// current is the link through which all files of a volume are read. It changes from
// one set of files to the next in one step, so that a program never reads a
// certificate with the key of another.
const current = "..data"

// write makes a directory hold these files and no others.
func (f files) write(dir string, now time.Time) error {
	version := ".." + now.UTC().Format("2006_01_02_15_04_05.") + strconv.FormatInt(now.UnixNano()%int64(time.Second), 10)
	if err := f.writeVersion(filepath.Join(dir, version)); err != nil {
		return err
	}
	if err := relink(version, filepath.Join(dir, current)); err != nil {
		return err
	}
	first := map[string]bool{}
	for path := range f {
		name, _, _ := strings.Cut(path, string(filepath.Separator))
		first[name] = true
	}
	for name := range first {
		if err := relink(filepath.Join(current, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return removeOthers(dir, version, first)
}

func (f files) writeVersion(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating a directory of a volume: %w", err)
	}
	for path, content := range f {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("creating a directory of a volume: %w", err)
		}
		if err := os.WriteFile(path, content.data, content.mode); err != nil {
			return fmt.Errorf("writing a file of a volume: %w", err)
		}
	}
	return nil
}

// relink makes path a link to target, in one step.
func relink(target, path string) error {
	if have, err := os.Readlink(path); err == nil && have == target {
		return nil
	}
	next := filepath.Join(filepath.Dir(path), "..next")
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an unfinished link of a volume: %w", err)
	}
	if err := os.Symlink(target, next); err != nil {
		return fmt.Errorf("linking a file of a volume: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("linking a file of a volume: %w", err)
	}
	return nil
}

// removeOthers removes former versions, and links to files that are no more.
func removeOthers(dir, version string, names map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("looking for former files of a volume: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name == current || name == version || names[name] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("removing former files of a volume: %w", err)
		}
	}
	return nil
}
