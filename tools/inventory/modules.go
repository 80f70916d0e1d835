package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is a module with packages that are linked into our programs.
type module struct {
	path, version string
	// dirs are the directories of the linked packages and their parents, up to the module's root.
	dirs []string
}

// listedPackage is the output of `go list` for a package.
type listedPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linkedModules returns our programs' modules on Linux. The modules for other systems differ only slightly.
func linkedModules() ([]module, error) {
	list := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages of the programs: %w", err)
	}
	return parseModules(json.NewDecoder(bytes.NewReader(out)))
}

func parseModules(packages *json.Decoder) ([]module, error) {
	found, dirs := map[string]module{}, map[string]map[string]bool{}
	for {
		var p listedPackage
		err := packages.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the packages of the programs: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		if dirs[p.Module.Path] == nil {
			found[p.Module.Path], dirs[p.Module.Path] = module{path: p.Module.Path, version: p.Module.Version}, map[string]bool{}
		}
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			dirs[p.Module.Path][dir] = true
			if dir == p.Module.Dir || !strings.HasPrefix(dir, p.Module.Dir) {
				break
			}
		}
	}
	modules := make([]module, 0, len(found))
	for _, path := range slices.Sorted(maps.Keys(found)) {
		m := found[path]
		m.dirs = slices.Sorted(maps.Keys(dirs[path]))
		modules = append(modules, m)
	}
	return modules, nil
}
