package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sources are two files for an archive.
func sources(t *testing.T) []Source {
	t.Helper()
	dir := t.TempDir()
	content := map[string][]byte{"db": bytes.Repeat([]byte("snapshot"), 10_000), "key": []byte("secret")}
	for name, data := range content {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []Source{{Snapshot, filepath.Join(dir, "db")}, {"control-plane/pki/ca.key", filepath.Join(dir, "key")}}
}

func manifest() Manifest {
	return Manifest{
		Format: Format, Time: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC), Karmada: "v1.2.3", Kubernetes: "1.36", Etcd: "3.6.0",
		Revision: 812, Keys: 99, Hash: 7, Clusters: []string{"east", "west"},
	}
}

func written(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	if err := Write(path, manifest(), sources(t)); err != nil {
		t.Fatal(err)
	}
	return path
}

func extract(t *testing.T, path string) (Manifest, string, error) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "into")
	opened, err := OpenFile(path)
	if err != nil {
		return Manifest{}, into, err
	}
	defer func() { _ = opened.Close() }()
	return opened.Manifest, into, opened.Extract(into)
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	path := written(t)
	got, into, err := extract(t, path)
	if err != nil {
		t.Fatal(err)
	}
	want := manifest()
	want.Files = got.Files
	if diff := cmp.Diff(want, got); diff != "" || len(got.Files) != 2 {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if key, err := os.ReadFile(filepath.Join(into, "control-plane/pki/ca.key")); err != nil || string(key) != "secret" {
		t.Errorf("key %q, %v", key, err)
	}
	for _, file := range []string{path, filepath.Join(into, Snapshot)} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s: %v, %v", file, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("files %v, %v", left, err)
	}
}

func TestABackupReplacesNoFile(t *testing.T) {
	path := written(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(path, manifest(), sources(t)); !errors.Is(err, ErrExists) {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestAChangedByteIsFound(t *testing.T) {
	path := written(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Bytes 4 to 9 of gzip are a time and hints, which nothing reads.
	for at := 10; at < len(whole); at += 1 + len(whole)/200 {
		broken := bytes.Clone(whole)
		broken[at] ^= 0x20
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := extract(t, path); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d of %d was changed: %v", at, len(whole), err)
		}
	}
}

func TestWhatIsNoBackupIsRefused(t *testing.T) {
	whole, err := os.ReadFile(written(t))
	if err != nil {
		t.Fatal(err)
	}
	evil := func(name string) []byte {
		m, s := manifest(), sources(t)
		s[1].Name = name
		path := filepath.Join(t.TempDir(), "evil")
		if err := Write(path, m, s); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	tests := map[string][]byte{
		"an empty file":                     nil,
		"a text":                            []byte("hello"),
		"half of a backup":                  whole[:len(whole)/2],
		"a backup without its last byte":    whole[:len(whole)-1],
		"a file outside of the directory":   evil("../escaped"),
		"a file at the top of the machine":  evil("/tmp/escaped"),
		"a file that comes twice in a name": evil(Snapshot),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, into, err := extract(t, path); err == nil {
				t.Error("it is taken for a backup")
			} else if _, err := os.Stat(filepath.Join(filepath.Dir(into), "escaped")); err == nil {
				t.Error("a file was written outside of the directory")
			}
		})
	}
}

func TestCheckReadable(t *testing.T) {
	tests := map[string]struct {
		change func(*Manifest)
		want   error
	}{
		"its own":                          {func(*Manifest) {}, nil},
		"one of an older Kubernetes":       {func(m *Manifest) { m.Kubernetes = "1.35" }, nil},
		"one of a newer Kubernetes":        {func(m *Manifest) { m.Kubernetes = "1.37" }, ErrForeign},
		"one of another major Kubernetes":  {func(m *Manifest) { m.Kubernetes = "2.0" }, ErrForeign},
		"one of a newer etcd":              {func(m *Manifest) { m.Etcd = "3.7.0" }, ErrForeign},
		"one of another major etcd":        {func(m *Manifest) { m.Etcd = "2.3.0" }, ErrForeign},
		"a newer patch of etcd":            {func(m *Manifest) { m.Etcd = "3.6.99" }, nil},
		"a newer format":                   {func(m *Manifest) { m.Format = Format + 1 }, ErrForeign},
		"no format":                        {func(m *Manifest) { m.Format = 0 }, ErrDamaged},
		"no version":                       {func(m *Manifest) { m.Kubernetes = "" }, ErrDamaged},
		"no snapshot among what it lists":  {func(m *Manifest) { m.Files = nil }, ErrDamaged},
		"an older format is read as it is": {func(m *Manifest) { m.Format = 1 }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := manifest()
			m.Files = []File{{Name: Snapshot}}
			test.change(&m)
			if err := m.CheckReadable(Versions{Kubernetes: "1.36", Etcd: "3.6.8"}); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}
