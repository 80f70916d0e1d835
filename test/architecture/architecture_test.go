// Package architecture tests that the code follows the layout in docs/ARCHITECTURE.md.
//
// The rules are tables: the allowed imports of each layer, forbidden dependencies, pinned
// versions, and the maximum length of files. A failure names the rule and the remedy. A
// change of a rule changes the table and the document together.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "karmada.io/karmada"

// repositoryRoot is the root of the repository, relative to this package.
var repositoryRoot = filepath.Join("..", "..")

// goPackage is one package, or one test variant of a package, as go list describes it.
type goPackage struct {
	ImportPath string
	ForTest    string
	DepOnly    bool
	Imports    []string
}

// isTest reports whether p is compiled for tests only.
func (g *goPackage) isTest() bool {
	return g.ForTest != "" || g.isTestProgram()
}

// isTestProgram reports whether p is the main package of a test program.
func (g *goPackage) isTestProgram() bool {
	return strings.HasSuffix(g.ImportPath, ".test")
}

// importGraph maps import paths to packages: all packages of the module, their tests and
// all dependencies.
type importGraph map[string]*goPackage

var loadGraph = sync.OnceValues(func() (importGraph, error) {
	command := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,ForTest,DepOnly,Imports", "./...")
	command.Dir = repositoryRoot
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w\n%s", err, &stderr)
	}
	return parseGraph(bytes.NewReader(output))
})

func parseGraph(r io.Reader) (importGraph, error) {
	packages := importGraph{}
	for decoder := json.NewDecoder(r); ; {
		var p goPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("decoding the list of packages: %w", err)
		}
		packages[p.ImportPath] = &p
	}
}

// modulePackages returns the packages of this module, sorted by import path. With tests, it
// includes their test programs.
func (i importGraph) modulePackages(tests bool) []*goPackage {
	var found []*goPackage
	for path, p := range i {
		if isWithin(path, module) && !p.DepOnly && (!p.isTest() || tests && p.isTestProgram()) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *goPackage) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return found
}

// importChain returns a shortest chain of imports from one package to the first package
// that target accepts, including both. It returns nil if there is none.
func (i importGraph) importChain(from string, target func(path string) bool) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		current := queue[0]
		if target(current) {
			var chain []string
			for ; current != ""; current = cameFrom[current] {
				chain = append(chain, current)
			}
			slices.Reverse(chain)
			return chain
		}
		p, ok := i[current]
		if !ok {
			continue
		}
		for _, next := range p.Imports {
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = current
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// isWithin reports whether path is one of the given packages or below one of them.
func isWithin(path string, parents ...string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool {
		return path == parent || strings.HasPrefix(path, parent+"/")
	})
}

func mustLoadGraph(t *testing.T) importGraph {
	t.Helper()
	g, err := loadGraph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}
