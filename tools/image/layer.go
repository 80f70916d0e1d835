package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// writeLayer writes a compressed layer. Its content depends only on the arguments.
func writeLayer(path string, files []file, modified time.Time) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the layer: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("compressing the layer: %w", err)
	}
	if err := writeTar(compressed, files, modified); err != nil {
		return err
	}
	return compressed.Close()
}

// writeTar writes files sorted by name, so that a directory precedes its files.
func writeTar(to io.Writer, files []file, modified time.Time) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	archive := tar.NewWriter(to)
	for i := range files {
		if err := writeFile(archive, &files[i], modified); err != nil {
			return fmt.Errorf("adding %s: %w", files[i].name, err)
		}
	}
	return archive.Close()
}

func writeFile(archive *tar.Writer, f *file, modified time.Time) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, ModTime: modified}
	switch {
	case f.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		return archive.WriteHeader(header)
	case strings.HasSuffix(f.name, "/"):
		header.Typeflag = tar.TypeDir
		return archive.WriteHeader(header)
	}
	var data io.Reader = bytes.NewReader(f.data)
	header.Size = int64(len(f.data))
	if f.source != "" {
		source, err := os.Open(f.source)
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		data, header.Size = source, info.Size()
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, data)
	return err
}
