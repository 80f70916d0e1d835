package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxLines     = 500
	maxTestLines = 900
)

// vagueNames lists package names that do not describe the purpose of a package.
var vagueNames = []string{
	"base", "common", "commons", "helper", "helpers", "lib", "manager", "misc", "shared", "types", "util", "utils",
}

var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// machinePath matches absolute paths of a home directory or checkout.
var machinePath = regexp.MustCompile("(?m)(?:^|[\\s\"'`=(:])(/(?:home|Users|root|work)/[^\\s\"'`)]*)")

// source is a text file of the repository.
type source struct {
	path    string // with slashes, from the top
	content []byte
}

func (s source) isGo() bool        { return strings.HasSuffix(s.path, ".go") }
func (s source) isGenerated() bool { return generatedHeader.Match(s.content) }

func (s source) maxLines() int {
	if strings.HasSuffix(s.path, "_test.go") {
		return maxTestLines
	}
	return maxLines
}

func TestFileLength(t *testing.T) {
	for _, s := range readSources(t) {
		if !s.isGo() || s.isGenerated() {
			continue
		}
		if lines := bytes.Count(s.content, []byte("\n")); lines > s.maxLines() {
			t.Errorf("%s has %d lines, more than %d: split it by topic", s.path, lines, s.maxLines())
		}
	}
}

func TestPackageNamesAreSpecific(t *testing.T) {
	for _, s := range readSources(t) {
		folder := filepath.Base(filepath.Dir(s.path))
		if s.isGo() && slices.Contains(vagueNames, folder) {
			t.Errorf("%s: the package name %q is too general: name the package after its purpose", s.path, folder)
		}
	}
}

func TestNoMachinePaths(t *testing.T) {
	for _, s := range readSources(t) {
		for _, found := range machinePath.FindAllSubmatch(s.content, -1) {
			t.Errorf("%s contains %s, which exists on one machine only: use a path relative to the repository or a temporary path", s.path, found[1])
		}
	}
}

func TestMachinePathPattern(t *testing.T) {
	tests := map[string]struct {
		text string
		want bool
	}{
		"a home":                         {"see " + "/home" + "/anna/karmada", true},
		"a quoted checkout":              {`dir := "` + "/work" + `/karmada"`, true},
		"a path in a URL":                {"https://example.com/home/page", false},
		"an API path":                    {"api/work/v1alpha1", false},
		"a temporary file":               {"/tmp/karmada", false},
		"the home directory by variable": {"$HOME/.kube/config", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := machinePath.MatchString(test.text); got != test.want {
				t.Errorf("%q is a machine path: %t, want %t", test.text, got, test.want)
			}
		})
	}
}

// readSources returns the text files of the repository, except in folders that Git ignores.
func readSources(t *testing.T) []source {
	t.Helper()
	var found []source
	err := filepath.WalkDir(repositoryRoot, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "dist", "node_modules"}, entry.Name()):
			return fs.SkipDir
		case !entry.Type().IsRegular(), entry.Name() == ".git": // a file in a work tree beside another
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.IndexByte(content, 0) >= 0 {
			return nil // not a text file
		}
		relative, err := filepath.Rel(repositoryRoot, path)
		found = append(found, source{path: filepath.ToSlash(relative), content: content})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parseGo parses Go code. The function at returns the position of a node.
func parseGo(t *testing.T, path string, content []byte) (file *ast.File, at func(ast.Node) token.Position) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, content, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file, func(node ast.Node) token.Position { return files.Position(node.Pos()) }
}
