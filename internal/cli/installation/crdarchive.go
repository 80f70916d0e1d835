package installation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
	"karmada.io/karmada/internal/cli/command"
)

// maxArchiveBytes and maxContentBytes limit the compressed and the uncompressed size of a CRD archive,
// because the archive may come from the network.
const (
	maxArchiveBytes = 20 << 20
	maxContentBytes = 200 << 20
)

// readCRDArchive reads a CRD archive, such as a release's crds.tar.gz, from a file or URL. It ignores the
// archive's patches: they add the conversion webhook, which the installation itself adds.
func readCRDArchive(ctx context.Context, program *command.Program, source string) ([]crds.CRD, error) {
	archive, err := program.ReadSource(ctx, source, maxArchiveBytes)
	if err != nil {
		return nil, fmt.Errorf("archive of CRDs %s: %w: correct --crds, or omit it to use the CRDs of this program", source, err)
	}
	definitions, err := parseCRDArchive(archive)
	if err != nil {
		return nil, fmt.Errorf("archive of CRDs %s: %w", source, err)
	}
	return definitions, nil
}

// parseCRDArchive returns the archive's CRDs, sorted by name.
func parseCRDArchive(archive []byte) ([]crds.CRD, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("it is not compressed by gzip: %w", err)
	}
	content := &io.LimitedReader{R: unzipped, N: maxContentBytes}
	definitions := map[string]crds.CRD{}
	for entries := tar.NewReader(content); ; {
		header, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && len(definitions) == 0:
			return nil, errors.New("it contains no CRD below crds/bases")
		case errors.Is(err, io.EOF):
			return slices.SortedFunc(maps.Values(definitions), func(a, b crds.CRD) int { return strings.Compare(a.Name(), b.Name()) }), nil
		case err != nil && content.N == 0:
			return nil, errors.New("it is too large")
		case err != nil:
			return nil, fmt.Errorf("reading it: %w", err)
		}
		if err := validateArchiveEntry(header); err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg || !strings.HasPrefix(header.Name, "crds/bases/") {
			continue
		}
		definition, err := parseCRD(entries)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", header.Name, err)
		}
		if _, isRepeated := definitions[definition.Name()]; isRepeated {
			return nil, fmt.Errorf("it contains CRD %s twice", definition.Name())
		}
		definitions[definition.Name()] = definition
	}
}

// validateArchiveEntry returns an error unless the entry is a file or directory below crds/bases or
// crds/patches.
func validateArchiveEntry(header *tar.Header) error {
	name := strings.TrimSuffix(header.Name, "/")
	isDirectory := header.Typeflag == tar.TypeDir
	isBelow := strings.HasPrefix(name, "crds/bases/") || strings.HasPrefix(name, "crds/patches/")
	isParent := isDirectory && slices.Contains([]string{"crds", "crds/bases", "crds/patches"}, name)
	switch {
	case !isDirectory && header.Typeflag != tar.TypeReg:
		return fmt.Errorf("entry %q is neither a file nor a directory", header.Name)
	case name != path.Clean(name) || !isBelow && !isParent:
		return fmt.Errorf("path %q is not allowed: an archive of CRDs has files below crds/bases and crds/patches only", header.Name)
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
		return crds.CRD{}, fmt.Errorf("it contains %s %q, and no CustomResourceDefinition with the name of its resource", definition.Kind,
			definition.Name)
	}
	return crd, nil
}
