package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// quotedPath is a path of this repository as the page names it; elements in brackets stand
// for any name.
var quotedPath = regexp.MustCompile("`((?:api|cmd|internal|test)(?:/[a-z<>]+)+)`")

// TestArchitecturePageListsAllPackages keeps docs/ARCHITECTURE.md a map of the tree:
// each package is on it, or one above it is, and what is on it exists.
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
		if isWithin(path, "internal") && !slices.ContainsFunc(paths, func(named string) bool { return coversPackage(named, path) }) {
			t.Errorf("%s is not in docs/ARCHITECTURE.md: add a line that says what it answers", path)
		}
	}
	for _, named := range paths {
		if strings.Contains(named, "<") {
			continue
		}
		if _, err := os.Stat(filepath.Join(repositoryRoot, named)); err != nil {
			t.Errorf("docs/ARCHITECTURE.md names %s, which is not there: %v", named, err)
		}
	}
}

// coversPackage reports whether a path of the page is that of a package or of one above it.
// What holds folders of equal rank names none of them, but for a pattern.
func coversPackage(named, path string) bool {
	want, have := strings.Split(named, "/"), strings.Split(path, "/")
	if len(have) < len(want) {
		return false
	}
	for i, element := range want {
		if !strings.HasPrefix(element, "<") && element != have[i] {
			return false
		}
	}
	return len(have) == len(want) || !slices.Contains([]string{"internal/domain", "internal/access", "internal/standalone"}, named)
}

func TestCoversPackage(t *testing.T) {
	tests := map[string]struct {
		named, path string
		want        bool
	}{
		"itself":                      {"internal/domain/work", "internal/domain/work", true},
		"one below":                   {"internal/domain/interpreter", "internal/domain/interpreter/builtin", true},
		"no other one":                {"internal/domain/work", "internal/domain/workload", false},
		"any in a pattern":            {"internal/controllers/<name>", "internal/controllers/binding", true},
		"no one of many equals":       {"internal/standalone", "internal/standalone/up", false},
		"the first of them by itself": {"internal/standalone", "internal/standalone", true},
		"nothing above":               {"internal/domain/work", "internal/domain", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := coversPackage(test.named, test.path); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
