package installation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"karmada.io/karmada/api/crds"
	"karmada.io/karmada/internal/cli/command"
)

// entry is an entry of an archive.
type entry struct {
	name, content string
	kind          byte
}

func writeArchive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	buffer := &bytes.Buffer{}
	zipped := gzip.NewWriter(buffer)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o644}
		if e.kind == tar.TypeSymlink {
			header.Linkname, header.Size = e.content, 0
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			if _, err := archive.Write([]byte(e.content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// releaseEntries are the entries of an archive with all CRDs of this version.
func releaseEntries(t testing.TB) []entry {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	entries := []entry{{"crds/", "", tar.TypeDir}, {"crds/bases/", "", tar.TypeDir}, {"crds/patches/", "", tar.TypeDir}, {"crds/patches/webhook_in_resourcebindings.yaml", "spec: {}", tar.TypeReg}}
	for _, crd := range all {
		entries = append(entries, entry{"crds/bases/" + crd.Group + "_" + crd.Plural + ".yaml", string(crd.YAML), tar.TypeReg})
	}
	return entries
}

func TestArchiveOfARelease(t *testing.T) {
	archive := writeArchive(t, releaseEntries(t)...)
	file := filepath.Join(t.TempDir(), "crds.tar.gz")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/crds.tar.gz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(archive)
	}))
	defer server.Close()
	want, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{file, server.URL + "/crds.tar.gz"} {
		got, err := readCRDArchive(t.Context(), &command.Program{}, source)
		if err != nil || len(got) != len(want) || got[0].Name() != want[0].Name() || !bytes.Equal(got[0].YAML, want[0].YAML) {
			t.Errorf("%s: %d CRDs, want %d: %v", source, len(got), len(want), err)
		}
	}
	for source, text := range map[string]string{server.URL + "/other": "404", filepath.Join(t.TempDir(), "none"): "no such file"} {
		if _, err := readCRDArchive(t.Context(), &command.Program{}, source); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestInvalidArchives(t *testing.T) {
	crd := releaseEntries(t)[4]
	tests := map[string]struct {
		entries []entry
		want    string
	}{
		"a path outside of the archive": {[]entry{{"crds/bases/../../etc/passwd", "x", tar.TypeReg}}, `path "crds/bases/../../etc/passwd" is not allowed`},
		"an absolute path":              {[]entry{{"/crds/bases/a.yaml", "x", tar.TypeReg}}, "is not allowed"},
		"a path with a dot":             {[]entry{{"./crds/bases/a.yaml", "x", tar.TypeReg}}, "is not allowed"},
		"another directory":             {[]entry{{"scripts/", "", tar.TypeDir}}, `path "scripts/" is not allowed`},
		"a file beside the directories": {[]entry{{"crds/readme.md", "x", tar.TypeReg}}, "is not allowed"},
		"a link":                        {[]entry{{"crds/bases/a.yaml", "/etc/passwd", tar.TypeSymlink}}, "neither a file nor a directory"},
		"no CRD":                        {[]entry{{"crds/bases/", "", tar.TypeDir}}, "contains no CRD"},
		"another object":                {[]entry{{"crds/bases/a.yaml", "kind: Secret\nmetadata: {name: a}", tar.TypeReg}}, `contains Secret "a"`},
		"text that is no YAML":          {[]entry{{"crds/bases/a.yaml", "{", tar.TypeReg}}, "file crds/bases/a.yaml: decoding it"},
		"a CRD that occurs twice":       {[]entry{crd, {"crds/bases/again.yaml", crd.content, tar.TypeReg}}, "twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := parseCRDArchive(writeArchive(t, test.entries...)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if _, err := parseCRDArchive([]byte("text")); err == nil || !strings.Contains(err.Error(), "gzip") {
		t.Errorf("a file that is not compressed: %v", err)
	}
}

func FuzzParseCRDArchive(f *testing.F) {
	f.Add(writeArchive(f, releaseEntries(f)[:5]...))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, archive []byte) {
		definitions, err := parseCRDArchive(archive)
		if err == nil && len(definitions) == 0 {
			t.Error("an archive without CRDs is accepted")
		}
	})
}
