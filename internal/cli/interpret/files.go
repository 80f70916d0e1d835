package interpret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxFileSize is the maximum size of a file, in bytes. An API server accepts objects of about 1.5 MiB.
const maxFileSize = 16 << 20

// fileTypes are the endings of the files that are read in a directory.
var fileTypes = []string{".json", ".yaml", ".yml"}

func isStandardInput(name string) bool { return name == "-" }

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// expand returns the paths and URLs that a value of -f stands for.
func (o *options) expand(name string) ([]string, error) {
	if isStandardInput(name) || isURL(name) {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if matches, globErr := filepath.Glob(name); globErr == nil && len(matches) > 0 {
			return matches, nil
		}
		return nil, fmt.Errorf("-f: the file %s does not exist", name)
	}
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	files, err := o.listDirectory(name)
	if err != nil {
		return nil, fmt.Errorf("-f: reading the directory %s: %w", name, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("-f: the directory %s has no file that ends with %s", name, strings.Join(fileTypes, ", "))
	}
	return files, nil
}

// listDirectory returns the files of a directory, in the order of their paths.
func (o *options) listDirectory(directory string) (files []string, err error) {
	err = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != directory && !o.recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(fileTypes, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// readText returns the content of a file, of a URL, or of standard input.
func (o *options) readText(ctx context.Context, name string) ([]byte, error) {
	switch {
	case isStandardInput(name):
		return readLimited(o.Program.In)
	case isURL(name):
		return download(ctx, name)
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file %s does not exist", name)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: give a file", name)
	}
	text, err := readLimited(file)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return text, nil
}

func download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("downloading the file: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("downloading %s: the server responded %s", url, response.Status)
	}
	text, err := readLimited(response.Body)
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", url, err)
	}
	return text, nil
}

// readLimited reads everything, or returns an error if it is larger than maxFileSize.
func readLimited(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFileSize {
		return nil, fmt.Errorf("the file is larger than %d MiB", maxFileSize>>20)
	}
	return text, nil
}
