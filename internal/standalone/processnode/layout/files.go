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

// files is the content of a volume by path.
type files map[string]file

type file struct {
	data []byte
	mode os.FileMode
}

func (f files) add(path string, data []byte, mode os.FileMode) error {
	if !filepath.IsLocal(path) || strings.HasPrefix(path, "..") {
		return fmt.Errorf("path %q: %w", path, errInvalidPath)
	}
	// The program runs as the same user as the node, and this user must be able to read the file.
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

// currentLink is the symbolic link through which all files of a volume are read. The link is
// switched atomically to a new version of the files, so that a program never reads a certificate
// of one version with the key of another version.
const currentLink = "..data"

// write writes these files to a directory and removes all other files.
func (f files) write(dir string, now time.Time) error {
	version := ".." + now.UTC().Format("2006_01_02_15_04_05.") + strconv.FormatInt(now.UnixNano()%int64(time.Second), 10)
	if err := f.writeVersion(filepath.Join(dir, version)); err != nil {
		return err
	}
	if err := replaceLink(version, filepath.Join(dir, currentLink)); err != nil {
		return err
	}
	topNames := map[string]bool{}
	for path := range f {
		name, _, _ := strings.Cut(path, string(filepath.Separator))
		topNames[name] = true
	}
	for name := range topNames {
		if err := replaceLink(filepath.Join(currentLink, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return removeOldFiles(dir, version, topNames)
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

// replaceLink atomically makes path a symbolic link to target.
func replaceLink(target, path string) error {
	if currentTarget, err := os.Readlink(path); err == nil && currentTarget == target {
		return nil
	}
	unfinished := filepath.Join(filepath.Dir(path), "..next")
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an unfinished link of a volume: %w", err)
	}
	if err := os.Symlink(target, unfinished); err != nil {
		return fmt.Errorf("linking a file of a volume: %w", err)
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("linking a file of a volume: %w", err)
	}
	return nil
}

// removeOldFiles removes old versions of the files, and links to files that no longer exist.
func removeOldFiles(dir, version string, names map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing old files of a volume: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name == currentLink || name == version || names[name] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("removing old files of a volume: %w", err)
		}
	}
	return nil
}
