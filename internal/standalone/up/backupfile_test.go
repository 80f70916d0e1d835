package up

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newSources returns two files for an archive.
func newSources(t *testing.T) []backupSource {
	t.Helper()
	dir := t.TempDir()
	content := map[string][]byte{"db": bytes.Repeat([]byte("snapshot"), 10_000), "key": []byte("secret")}
	for name, data := range content {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []backupSource{{snapshotName, filepath.Join(dir, "db")}, {"control-plane/pki/ca.key", filepath.Join(dir, "key")}}
}

func newManifest() backupManifest {
	return backupManifest{
		Format: backupFormatVersion, Time: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC), Karmada: "v1.2.3", Kubernetes: "1.36", Etcd: "3.6.0",
		Revision: 812, Keys: 99, Hash: 7, Clusters: []string{"east", "west"},
	}
}

func writeTestBackup(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.tar.gz")
	if err := writeBackupFile(path, newManifest(), newSources(t)); err != nil {
		t.Fatal(err)
	}
	return path
}

func extractBackup(t *testing.T, path string) (backupManifest, string, error) {
	t.Helper()
	into := filepath.Join(t.TempDir(), "into")
	opened, err := openBackupFile(path)
	if err != nil {
		return backupManifest{}, into, err
	}
	defer func() { _ = opened.Close() }()
	return opened.Manifest, into, opened.Extract(into)
}

func TestExtractReturnsWrittenFiles(t *testing.T) {
	path := writeTestBackup(t)
	got, into, err := extractBackup(t, path)
	if err != nil {
		t.Fatal(err)
	}
	want := newManifest()
	want.Files = got.Files
	if diff := cmp.Diff(want, got); diff != "" || len(got.Files) != 2 {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if key, err := os.ReadFile(filepath.Join(into, "control-plane/pki/ca.key")); err != nil || string(key) != "secret" {
		t.Errorf("the extracted key is %q (%v)", key, err)
	}
	for _, file := range []string{path, filepath.Join(into, snapshotName)} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of %s: %v, %v", file, info.Mode(), err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); err != nil || len(left) != 1 {
		t.Errorf("files beside the backup: %v (%v)", left, err)
	}
}

func TestWriteDoesNotReplaceFile(t *testing.T) {
	path := writeTestBackup(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeBackupFile(path, newManifest(), newSources(t)); !errors.Is(err, ErrExists) {
		t.Errorf("error %v, want %v", err, ErrExists)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestExtractDetectsChangedByte(t *testing.T) {
	path := writeTestBackup(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Bytes 4 to 9 of a gzip file are a time and hints that the reader ignores.
	for at := 10; at < len(whole); at += 1 + len(whole)/200 {
		broken := bytes.Clone(whole)
		broken[at] ^= 0x20
		if err := os.WriteFile(path, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := extractBackup(t, path); !errors.Is(err, ErrDamaged) {
			t.Errorf("with byte %d of %d changed the error is %v", at, len(whole), err)
		}
	}
}

func TestExtractRejectsInvalidArchives(t *testing.T) {
	whole, err := os.ReadFile(writeTestBackup(t))
	if err != nil {
		t.Fatal(err)
	}
	withFileName := func(name string) []byte {
		m, s := newManifest(), newSources(t)
		s[1].Name = name
		path := filepath.Join(t.TempDir(), "evil")
		if err := writeBackupFile(path, m, s); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	tests := map[string][]byte{
		"an empty file":                   nil,
		"a text file":                     []byte("hello"),
		"the first half of a backup":      whole[:len(whole)/2],
		"a backup without its last byte":  whole[:len(whole)-1],
		"a path outside of the directory": withFileName("../escaped"),
		"an absolute path":                withFileName("/tmp/escaped"),
		"a file name that occurs twice":   withFileName(snapshotName),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, into, err := extractBackup(t, path); err == nil {
				t.Error("the file is accepted as a backup")
			} else if _, err := os.Stat(filepath.Join(filepath.Dir(into), "escaped")); err == nil {
				t.Error("a file was written outside of the directory")
			}
		})
	}
}

func TestCheckReadable(t *testing.T) {
	tests := map[string]struct {
		change func(*backupManifest)
		want   error
	}{
		"the same versions":           {func(*backupManifest) {}, nil},
		"an older Kubernetes":         {func(m *backupManifest) { m.Kubernetes = "1.35" }, nil},
		"a newer Kubernetes":          {func(m *backupManifest) { m.Kubernetes = "1.37" }, errUnsupportedBackup},
		"another major Kubernetes":    {func(m *backupManifest) { m.Kubernetes = "2.0" }, errUnsupportedBackup},
		"a newer etcd":                {func(m *backupManifest) { m.Etcd = "3.7.0" }, errUnsupportedBackup},
		"another major etcd":          {func(m *backupManifest) { m.Etcd = "2.3.0" }, errUnsupportedBackup},
		"a newer patch of etcd":       {func(m *backupManifest) { m.Etcd = "3.6.99" }, nil},
		"a newer format":              {func(m *backupManifest) { m.Format = backupFormatVersion + 1 }, errUnsupportedBackup},
		"no format":                   {func(m *backupManifest) { m.Format = 0 }, ErrDamaged},
		"no version":                  {func(m *backupManifest) { m.Kubernetes = "" }, ErrDamaged},
		"no snapshot in the manifest": {func(m *backupManifest) { m.Files = nil }, ErrDamaged},
		"the oldest format":           {func(m *backupManifest) { m.Format = 1 }, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newManifest()
			m.Files = []backupFile{{Name: snapshotName}}
			test.change(&m)
			if err := m.CheckReadable(backupVersions{Kubernetes: "1.36", Etcd: "3.6.8"}); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}
