package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// document is a CycloneDX 1.6 document with the fields that we use. It has no time and no
// serial number, so that two documents of the same program are equal.
type document struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licences   []licence  `json:"licenses,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type licence struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// ourLicence is the license of our own code. goLicence is the license of the standard
// library.
const (
	ourLicence = "Apache-2.0"
	goLicence  = "BSD-3-Clause"
)

// newDocument returns the program's document, from the build information in its file.
func newDocument(program, version string, licences map[string]string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading the build information: %w", err)
	}
	sum, err := checksum(program)
	if err != nil {
		return nil, err
	}
	composed, err := composeDocument(info, version, sum, licences)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(composed); err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	return text.Bytes(), nil
}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the program: %w", err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("reading the program: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// composeDocument returns a program's document. The version is a parameter, because the build information
// does not contain it. sum is the program's SHA-256.
func composeDocument(info *debug.BuildInfo, version, sum string, licences map[string]string) (document, error) {
	self := component{
		Type: "application", Name: filepath.Base(info.Path), Version: version,
		Hashes: []hash{{"SHA-256", sum}}, Licences: []licence{{ourLicence}},
		PURL: "pkg:golang/" + info.Main.Path + "@" + version + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/"),
	}
	self.Ref = self.PURL
	for _, setting := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "GOAMD64", "GOARM64", "CGO_ENABLED", "-trimpath"}, setting.Key) {
			self.Properties = append(self.Properties, property{"go:" + setting.Key, setting.Value})
		}
	}
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	std := component{Type: "library", Name: "std", Version: info.GoVersion, Licences: []licence{{goLicence}},
		PURL: "pkg:golang/std@" + goVersion}
	std.Ref = std.PURL
	composed := document{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{self}, Components: []component{std}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		expression, known := licences[dep.Path]
		if !known {
			return document{}, fmt.Errorf("module %s %s: not a module of this source: rebuild the program", dep.Path, dep.Version)
		}
		c := component{
			Type: "library", Name: dep.Path, Version: dep.Version, Licences: []licence{{expression}},
			PURL: "pkg:golang/" + dep.Path + "@" + dep.Version, Properties: []property{{"go:sum", dep.Sum}},
		}
		c.Ref = c.PURL
		composed.Components = append(composed.Components, c)
	}
	dependencies := dependency{Ref: self.Ref}
	for _, c := range composed.Components {
		dependencies.DependsOn = append(dependencies.DependsOn, c.Ref)
	}
	composed.Dependencies = []dependency{dependencies}
	return composed, nil
}
