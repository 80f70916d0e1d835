package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// checkedPackage is a package of this module with its types, without its tests.
type checkedPackage struct {
	path  string
	files []*ast.File
	info  *types.Info
}

// checker type-checks packages. Packages of this module are read from their sources, so that a
// field is the same object in all of them. All others are read from the build cache.
type checker struct {
	files   *token.FileSet
	checked map[string]*types.Package
	library types.Importer
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	if found := c.checked[path]; found != nil {
		return found, nil
	}
	return c.library.Import(path)
}

func (c *checker) check(path string, files []*ast.File) (*checkedPackage, error) {
	info := &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{}, Types: map[ast.Expr]types.TypeAndValue{},
	}
	config := types.Config{Importer: c}
	made, err := config.Check(path, c.files, files, info)
	if err != nil {
		return nil, fmt.Errorf("type-checking %s: %w", path, err)
	}
	c.checked[path] = made
	return &checkedPackage{path: path, files: files, info: info}, nil
}

// listedPackage is a package as go list describes it.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// typeCheckedPackages are the packages that own options, and the packages that these import.
// They do not include packages that link Kubernetes, which take minutes to compile.
var typeCheckedPackages = []string{
	"./internal/programs/...", "./internal/controllers/...", "./internal/scheduler/...", "./internal/servers/...", "./internal/access/...", "./internal/domain/...",
}

// loadTypes type-checks typeCheckedPackages.
var loadTypes = sync.OnceValues(func() (loaded struct {
	checker  *checker
	packages []*checkedPackage
}, err error,
) {
	command := exec.Command("go", append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles"}, typeCheckedPackages...)...)
	command.Dir = repositoryRoot
	// The programs are built without cgo, too. With the cgo of the race detector, this command would
	// compile all packages once more.
	command.Env = append(command.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return loaded, fmt.Errorf("listing packages: %w\n%s", err, &stderr)
	}
	exports := map[string]string{}
	c := &checker{files: token.NewFileSet(), checked: map[string]*types.Package{"unsafe": types.Unsafe}}
	c.library = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	loaded.checker = c
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return loaded, nil
		} else if err != nil {
			return loaded, fmt.Errorf("decoding the list of packages: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !isWithin(p.ImportPath, module) {
			continue
		}
		// Dependencies come first in the list.
		checked, err := c.parseAndCheck(p)
		if err != nil {
			return loaded, err
		}
		loaded.packages = append(loaded.packages, checked)
	}
})

func (c *checker) parseAndCheck(p listedPackage) (*checkedPackage, error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		files = append(files, file)
	}
	return c.check(p.ImportPath, files)
}
