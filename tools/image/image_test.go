package main

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

func writeFake(t *testing.T, created time.Time) (dir string, written []writtenImage) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "karmada")
	if err := os.WriteFile(binary, []byte("binary"), 0o700); err != nil {
		t.Fatal(err)
	}
	files := append(commonFiles(), withParents([]file{{name: licenseDir + "example.com/m@v1.0.0/LICENSE", mode: 0o644, data: []byte("text")}})...)
	c := content{version: "v1.2.3", revision: "0123", created: created, files: files}
	dir = t.TempDir()
	written, err := c.write(platforms, map[string]string{"amd64": binary, "arm64": binary}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, written
}

func TestTwoRunsWriteTheSameBytes(t *testing.T) {
	created := time.Unix(1700000000, 0).UTC()
	one, first := writeFake(t, created)
	two, second := writeFake(t, created)
	for i := range first {
		if first[i].digest != second[i].digest || first[i].bytes != second[i].bytes {
			t.Errorf("the digests of %s are %s and %s", filepath.Base(first[i].path), first[i].digest, second[i].digest)
		}
	}
	for _, archive := range []string{"karmada-v1.2.3-linux-amd64.tar", "karmada-v1.2.3-linux-arm64.tar"} {
		if a, b := read(t, filepath.Join(one, archive)), read(t, filepath.Join(two, archive)); a != b || a == "" {
			t.Errorf("two runs write different bytes of %s", archive)
		}
	}
	if a, b := read(t, filepath.Join(one, "karmada-v1.2.3-oci", "index.json")), read(t, filepath.Join(two, "karmada-v1.2.3-oci", "index.json")); a != b {
		t.Errorf("two runs write different indexes:\n%s\n%s", a, b)
	}
	if _, other := writeFake(t, created.Add(time.Hour)); other[0].digest == first[0].digest {
		t.Error("the digest does not depend on the time of the source")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestImageRunsProgramsByName(t *testing.T) {
	dir, written := writeFake(t, time.Unix(1700000000, 0).UTC())
	at, err := layout.FromPath(filepath.Join(dir, "karmada-v1.2.3-oci"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := at.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	index, err := root.ImageIndex(written[2].digest)
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(written[0].digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "amd64" || config.Config.User != "65532:65532" || len(config.Config.Entrypoint)+len(config.Config.Cmd) > 0 || config.Config.Env[0] != "PATH=/bin" {
		t.Errorf("the configuration is %+v", config)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	entries := layerEntries(t, image)
	for name, want := range map[string]tar.Header{
		"bin/karmada":           {Typeflag: tar.TypeReg, Mode: 0o755},
		"bin/karmada-scheduler": {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "karmada"},
		"bin/kube-apiserver":    {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "karmada"},
		"bin/etcd":              {Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: "karmada"},
		"tmp/":                  {Typeflag: tar.TypeDir, Mode: 0o1777},
		"etc/passwd":            {Typeflag: tar.TypeReg, Mode: 0o644},
		licenseDir + "example.com/m@v1.0.0/LICENSE": {Typeflag: tar.TypeReg, Mode: 0o644},
	} {
		got := entries[name]
		if got == nil || got.Typeflag != want.Typeflag || got.Mode != want.Mode || got.Linkname != want.Linkname || got.Uid != 0 || got.Gid != 0 {
			t.Errorf("%s is %+v, want %+v", name, got, want)
		}
	}
}

// layerEntries returns the entries of the layer, and checks that a directory precedes its entries.
func layerEntries(t *testing.T, image v1.Image) map[string]*tar.Header {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has %d layers, %v, want 1", len(layers), err)
	}
	uncompressed, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = uncompressed.Close() }()
	entries, archive := map[string]*tar.Header{}, tar.NewReader(uncompressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		parent := header.Name[:strings.LastIndex(strings.TrimSuffix(header.Name, "/"), "/")+1]
		if parent != "" && entries[parent] == nil {
			t.Errorf("%s precedes its directory", header.Name)
		}
		if entries[header.Name] != nil {
			t.Errorf("%s occurs twice", header.Name)
		}
		entries[header.Name] = header
	}
}

func TestArchiveNamesItsImage(t *testing.T) {
	dir, _ := writeFake(t, time.Unix(1700000000, 0).UTC())
	archive := read(t, filepath.Join(dir, "karmada-v1.2.3-linux-arm64.tar"))
	for _, want := range []string{`"io.containerd.image.name": "localhost/karmada/karmada:v1.2.3"`, `"imageLayoutVersion"`, `"architecture": "arm64"`} {
		if !strings.Contains(archive, want) {
			t.Errorf("the archive does not contain %s", want)
		}
	}
}

func TestVersionMustBeATag(t *testing.T) {
	if _, err := (content{version: "v1+x"}).write(platforms, nil, t.TempDir()); err == nil || !strings.Contains(err.Error(), "v1+x") {
		t.Errorf("the error is %v", err)
	}
}

func TestAuthoritiesAreCertificates(t *testing.T) {
	rest, count := authorities(), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		count++
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
	}
	if count < 100 {
		t.Errorf("the image has %d CA certificates, want at least 100", count)
	}
}

func TestParseRejectsWrongFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"without a version":          {nil, "--version is required"},
		"with another system":        {[]string{"--version=v1", "--platforms=windows/amd64"}, "--platforms"},
		"with an empty platform":     {[]string{"--version=v1", "--platforms="}, "--platforms"},
		"with an unknown flag":       {[]string{"--no-such-flag"}, "not defined"},
		"with too long a platform":   {[]string{"--version=v1", "--platforms=a/b/c/d"}, "--platforms"},
		"with only an architecture":  {[]string{"--version=v1", "--platforms=amd64"}, "--platforms"},
		"with one of two wrong ones": {[]string{"--version=v1", "--platforms=linux/amd64,x/arm64"}, "--platforms"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
