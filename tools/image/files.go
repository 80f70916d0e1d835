package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/pem"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user and group ID that programs run as.
const nonroot = 65532

// programList has the names of the programs that the binary is, one in a line.
//
//go:embed programs.txt
var programList string

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// file is an entry of the layer. Its data is either in memory or in a file on this machine.
type file struct {
	// name is the path without a leading slash. A directory's name ends with a slash.
	name string
	mode int64
	// link is the target of a symbolic link. It is empty for other entries.
	link string
	data []byte
	// source is the path of the file that contains the data. If it is empty, data is used.
	source string
}

// commonFiles returns all entries except the binary and the licenses of modules.
func commonFiles() []file {
	files := []file{
		{name: "bin/", mode: 0o755},
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte(passwd)},
		{name: "etc/group", mode: 0o644, data: []byte(group)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{name: "tmp/", mode: 0o1777},
	}
	for name := range strings.FieldsSeq(programList) {
		files = append(files, file{name: "bin/" + name, mode: 0o777, link: "karmada"})
	}
	return files
}

// authorities returns the certificates of the CAs that Mozilla trusts, in PEM. It omits CAs with a
// constraint, such as a date after which their new certificates are not trusted, because a PEM file
// cannot express constraints.
func authorities() []byte {
	var certificates []byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			certificates = append(certificates, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return certificates
}

// licenseDir is the directory in the image that contains the licenses.
const licenseDir = "usr/share/doc/karmada/"

// licenseName matches the names of files that contain a license or a notice that must be kept.
var licenseName = regexp.MustCompile(`(?i)^(LICEN[CS]E|COPYING|NOTICE|PATENTS)([.-].*)?$`)

// licenseFiles returns Karmada's license, and the licenses of Go and of all modules in the binary.
func licenseFiles(ctx context.Context) ([]file, error) {
	list, err := output(ctx, "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}\t{{.Dir}}{{end}}{{end}}",
		"./cmd/karmada")
	if err != nil {
		return nil, err
	}
	root, err := output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules := append(strings.Split(list, "\n"), "karmada\t.", "go\t"+root)
	slices.Sort(modules)
	var files []file
	for _, line := range slices.Compact(modules) {
		name, dir, found := strings.Cut(line, "\t")
		if !found {
			continue
		}
		texts, err := licensesOf(name, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, texts...)
	}
	return withParents(files), nil
}

func licensesOf(module, dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the license of %s: %w", module, err)
	}
	var files []file
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !licenseName.MatchString(entry.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the license of %s: %w", module, err)
		}
		files = append(files, file{name: licenseDir + module + "/" + entry.Name(), mode: 0o644,
			data: bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))})
	}
	return files, nil
}

// withParents adds the files' parent directories.
func withParents(files []file) []file {
	seen := map[string]bool{}
	all := files
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			if !seen[dir] {
				seen[dir] = true
				all = append(all, file{name: dir + "/", mode: 0o755})
			}
		}
	}
	return all
}
