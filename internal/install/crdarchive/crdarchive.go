// Package crdarchive answers: which CRDs does an archive contain? The archive is a compressed tar
// file, such as crds.tar.gz of a release: CRDs are below crds/bases, and patches below crds/patches.
// The patches only add the conversion webhook, which the installation adds itself, so they are not
// read.
//
// An archive comes from the network. So its size and its paths are limited, and nothing is unpacked
// to the disk.
package crdarchive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
)

const (
	// downloadTimeout is the time limit of a download.
	downloadTimeout = time.Minute
	// maxArchiveBytes and maxContentBytes limit the size of an archive and of its content.
	maxArchiveBytes = 20 << 20
	maxContentBytes = 200 << 20
)

// Directories of an archive.
const (
	root    = "crds"
	bases   = "crds/bases"
	patches = "crds/patches"
)

// PathError means that an archive has a file at a path that archives of CRDs do not have.
type PathError struct{ Path string }

// Error implements error.
func (p *PathError) Error() string {
	return fmt.Sprintf("path %q is not allowed: an archive of CRDs has files below %s and %s only", p.Path, bases, patches)
}

var (
	errNoCRDs   = errors.New("it contains no CRD below " + bases)
	errTooLarge = errors.New("it is too large")
)

// Read reads an archive from a file or, if source begins with http:// or https://, from a URL.
func Read(ctx context.Context, source string) ([]crds.CRD, error) {
	reader, err := open(ctx, source)
	if err != nil {
		return nil, fmt.Errorf("archive of CRDs %s: %w", source, err)
	}
	defer reader.Close()
	definitions, err := Parse(io.LimitReader(reader, maxArchiveBytes))
	if err != nil {
		return nil, fmt.Errorf("archive of CRDs %s: %w", source, err)
	}
	return definitions, nil
}

func open(ctx context.Context, source string) (io.ReadCloser, error) {
	if !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		return os.Open(source)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: downloadTimeout}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("downloading it: %w: omit the flag --crds to use the CRDs of this program", err)
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("downloading it: the server answers %s", response.Status)
	}
	return response.Body, nil
}

// Parse reads an archive. The CRDs are sorted by name.
func Parse(archive io.Reader) ([]crds.CRD, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, fmt.Errorf("it is not compressed by gzip: %w", err)
	}
	content := &io.LimitedReader{R: unzipped, N: maxContentBytes}
	var definitions []crds.CRD
	for entries := tar.NewReader(content); ; {
		header, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && len(definitions) == 0:
			return nil, errNoCRDs
		case errors.Is(err, io.EOF):
			slices.SortFunc(definitions, func(a, b crds.CRD) int { return strings.Compare(a.Name(), b.Name()) })
			return definitions, checkUnique(definitions)
		case err != nil && content.N == 0:
			return nil, errTooLarge
		case err != nil:
			return nil, fmt.Errorf("reading it: %w", err)
		}
		if err := checkEntry(header); err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg || !strings.HasPrefix(header.Name, bases+"/") {
			continue
		}
		definition, err := parseCRD(entries)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", header.Name, err)
		}
		definitions = append(definitions, definition)
	}
}

// checkEntry returns an error if an archive of CRDs has no such entry.
func checkEntry(header *tar.Header) error {
	name := strings.TrimSuffix(header.Name, "/")
	if name != path.Clean(name) || path.IsAbs(name) {
		return &PathError{Path: header.Name}
	}
	isBelow := strings.HasPrefix(name, bases+"/") || strings.HasPrefix(name, patches+"/")
	switch header.Typeflag {
	case tar.TypeDir:
		if !isBelow && !slices.Contains([]string{root, bases, patches}, name) {
			return &PathError{Path: header.Name}
		}
	case tar.TypeReg:
		if !isBelow {
			return &PathError{Path: header.Name}
		}
	default:
		return fmt.Errorf("entry %q is neither a file nor a directory", header.Name)
	}
	return nil
}

func parseCRD(file io.Reader) (crds.CRD, error) {
	data, err := io.ReadAll(file)
	if err != nil {
		return crds.CRD{}, fmt.Errorf("reading it: %w", err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, definition); err != nil {
		return crds.CRD{}, fmt.Errorf("decoding it: %w", err)
	}
	crd := crds.CRD{Group: definition.Spec.Group, Plural: definition.Spec.Names.Plural, YAML: data}
	if definition.Kind != "CustomResourceDefinition" || definition.Name != crd.Name() {
		return crds.CRD{}, fmt.Errorf("it contains %s %q, and no CustomResourceDefinition with the name of its resource", definition.Kind, definition.Name)
	}
	return crd, nil
}

func checkUnique(definitions []crds.CRD) error {
	for i := 1; i < len(definitions); i++ {
		if definitions[i].Name() == definitions[i-1].Name() {
			return fmt.Errorf("it contains CRD %s twice", definitions[i].Name())
		}
	}
	return nil
}
