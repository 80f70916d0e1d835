package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quotedPath matches a path of this repository in the page. Elements in angle brackets
// match any name.
var quotedPath = regexp.MustCompile("`((?:api|cmd|internal|test)(?:/[a-z<>]+)+)`")

// TestArchitecturePageListsAllPackages checks that docs/ARCHITECTURE.md lists each package
// or a parent of it, and that all listed paths exist.
func TestArchitecturePageListsAllPackages(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, found := range quotedPath.FindAllStringSubmatch(string(page), -1) {
		paths = append(paths, found[1])
	}
	g := mustLoadGraph(t)
	for _, p := range g.modulePackages(false) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		if isWithin(path, "internal") && !slices.ContainsFunc(paths, func(listed string) bool { return coversPackage(listed, path) }) {
			t.Errorf("%s is not in docs/ARCHITECTURE.md: add a line with its purpose", path)
		}
	}
	for _, listed := range paths {
		if strings.Contains(listed, "<") {
			continue
		}
		if _, err := os.Stat(filepath.Join(repositoryRoot, listed)); err != nil {
			t.Errorf("docs/ARCHITECTURE.md lists %s, which does not exist: %v", listed, err)
		}
	}
}

// coversPackage reports whether a path of the page is the path of a package or of a parent
// of it. The folders domain, access and standalone do not cover their subfolders: the page
// must list each of them.
func coversPackage(listed, path string) bool {
	want, elements := strings.Split(listed, "/"), strings.Split(path, "/")
	if len(elements) < len(want) {
		return false
	}
	for i, element := range want {
		if !strings.HasPrefix(element, "<") && element != elements[i] {
			return false
		}
	}
	return len(elements) == len(want) || !slices.Contains([]string{"internal/domain", "internal/access", "internal/standalone"}, listed)
}

func TestCoversPackage(t *testing.T) {
	tests := map[string]struct {
		listed, path string
		want         bool
	}{
		"the same path":                        {"internal/domain/work", "internal/domain/work", true},
		"a subpackage":                         {"internal/domain/interpreter", "internal/domain/interpreter/builtin", true},
		"not a package with a longer name":     {"internal/domain/work", "internal/domain/workload", false},
		"any name for a pattern":               {"internal/controllers/<name>", "internal/controllers/binding", true},
		"not the subfolder of a parent folder": {"internal/standalone", "internal/standalone/up", false},
		"the parent folder itself":             {"internal/standalone", "internal/standalone", true},
		"not the parent":                       {"internal/domain/work", "internal/domain", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := coversPackage(test.listed, test.path); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
