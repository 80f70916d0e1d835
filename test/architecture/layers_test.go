package architecture

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layer is a part of the repository whose packages have the same import rule.
type layer struct {
	// folder is relative to the root. With a last element of *, each subfolder is a
	// separate unit, and units must not import each other.
	folder string
	// allowedFolders lists the folders of this module that the layer may import in addition
	// to its own unit.
	allowedFolders []string
	// allowedLibraries, if not nil, lists all packages of other modules that the layer may
	// import.
	allowedLibraries []string
	// forbidden lists packages of the standard library that the layer must not import.
	forbidden []string
	// reason is the reason for the rule, with the remedy.
	reason string
}

// foundations are small packages that do not depend on Karmada.
var foundations = []string{"internal/pki", "internal/version"}

var (
	decisionImports   = append([]string{"api", "internal/domain"}, foundations...)
	controllerImports = append([]string{"internal/access", "internal/loop"}, decisionImports...)
)

// assemblyImports lists the allowed imports of packages that assemble programs: all folders
// except main packages and commands.
var assemblyImports = append([]string{
	"internal/controllers", "internal/scheduler", "internal/descheduler", "internal/servers", "internal/extensionserver",
	"internal/programs", "internal/registration", "internal/standalone", "internal/install", "internal/testenv", "internal/console",
}, controllerImports...)

// layers lists the layers of the module. The first row that matches a package applies.
var layers = []layer{
	{
		folder: "api", allowedFolders: []string{"api"},
		allowedLibraries: []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/kube-openapi/pkg"},
		reason:           "modules that import the API types must not get other dependencies: move code that needs them into internal/domain or internal/access",
	},
	{
		folder: "pkg", allowedFolders: []string{"api", "pkg"},
		allowedLibraries: []string{"k8s.io/api", "k8s.io/apimachinery"},
		reason:           "modules of users import these packages, which must not get other dependencies: move code that needs them into internal",
	},
	{folder: "examples/*", allowedFolders: []string{"api", "pkg"}, reason: "an example shows code that a user can copy into another module: use only api and pkg"},
	{
		folder: "internal/domain", allowedFolders: []string{"api", "internal/domain"},
		allowedLibraries: []string{
			"k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/yaml",
			"github.com/evanphx/json-patch/v5", "gomodules.xyz/jsonpatch/v2",
			"github.com/yuin/gopher-lua", "layeh.com/gopher-json", "k8s.io/client-go/util/jsonpath",
			// The rules of kube-scheduler for the requests and the node affinity of a Pod.
			"k8s.io/component-helpers/resource", "k8s.io/component-helpers/scheduling/corev1/nodeaffinity",
		},
		forbidden: []string{"net/http", "os", "os/exec", "net", "log"},
		reason:    "decisions depend on their arguments only: the caller reads the state and passes it in",
	},
	{folder: "internal/console", allowedFolders: []string{"internal/domain/spelling"}, reason: "a foundation does not depend on Karmada: pass in the values that it needs"},
	{folder: "internal/pki", allowedFolders: []string{}, reason: "a foundation does not depend on Karmada: pass in the values that it needs"},
	{folder: "internal/version", allowedFolders: []string{}, allowedLibraries: []string{}, reason: "a foundation does not depend on Karmada: pass in the values that it needs"},
	{
		folder: "internal/loop", allowedFolders: append([]string{"internal/loop"}, decisionImports...),
		reason: "the controller kit does not depend on its users: pass in a function or a value",
	},
	{
		folder: "internal/access", allowedFolders: append([]string{"internal/access", "internal/loop"}, decisionImports...),
		reason: "access wraps one external system: move the loop that uses it into a controller",
	},
	{folder: "internal/controllers/*", allowedFolders: controllerImports, reason: "controllers communicate through stored objects: move shared code into internal/domain or internal/access"},
	{folder: "internal/scheduler", allowedFolders: controllerImports, reason: "the scheduler communicates through stored objects: move shared code into internal/domain or internal/access"},
	{folder: "internal/descheduler", allowedFolders: controllerImports, reason: "the descheduler communicates through stored objects: move shared code into internal/domain or internal/access"},
	{folder: "internal/extensionserver", allowedFolders: decisionImports, reason: "the kit of aggregated API servers does not depend on its users: pass in a function or a value"},
	{folder: "internal/servers/*", allowedFolders: append([]string{"internal/extensionserver"}, controllerImports...), reason: "servers are independent of each other: move shared code into internal/domain or internal/access"},
	{folder: "internal/programs", allowedFolders: assemblyImports, reason: "assembly must not depend on the command line: move the code below internal/programs"},
	{folder: "internal/standalone", allowedFolders: assemblyImports, reason: "assembly must not depend on the command line: move the code below internal/standalone"},
	{folder: "internal/registration", allowedFolders: controllerImports, reason: "commands and programs join clusters: pass in the values that only one of them has"},
	{folder: "charts", allowedFolders: []string{}, allowedLibraries: []string{}, reason: "the chart is data: move code into internal/install"},
	{folder: "internal/install", allowedFolders: append([]string{"charts"}, assemblyImports...), reason: "assembly must not depend on the command line: move the code below internal/install"},
	{folder: "internal/testenv", allowedFolders: assemblyImports, reason: "assembly must not depend on the command line: move the code below internal/testenv"},
	{folder: "internal/reference", allowedFolders: append([]string{"internal/cli"}, assemblyImports...), reason: "the reference reads the tables of the programs: no package depends on it"},
	{folder: "internal/cli", allowedFolders: append([]string{"internal/cli"}, assemblyImports...), reason: "a main package cannot be imported: move the code below internal/cli"},
	{folder: "cmd/*", allowedFolders: append([]string{"internal/cli"}, assemblyImports...), reason: "a main package has only a few lines: move the code into internal"},
	{folder: "test/*", allowedFolders: append([]string{"examples", "internal/cli", "pkg"}, assemblyImports...), reason: "test packages are independent of each other: move shared code into internal/testenv"},
}

func TestLayerImports(t *testing.T) {
	for _, violation := range importViolations(mustLoadGraph(t)) {
		t.Error(violation)
	}
}

// TestLayersHavePackages requires that each row of the table applies to a package, so that
// the table describes the repository as it is.
func TestLayersHavePackages(t *testing.T) {
	used := map[string]bool{}
	for _, p := range mustLoadGraph(t).modulePackages(true) {
		if l, _ := layerOf(relativePath(strings.TrimSuffix(p.ImportPath, ".test"))); l != nil {
			used[l.folder] = true
		}
	}
	for _, l := range layers {
		if !used[l.folder] {
			t.Errorf("the layer %s has no package: remove its row from the table of layers", l.folder)
		}
	}
	for name, list := range map[string][]string{"controllers": controllerImports, "assembly": assemblyImports} {
		for _, allowed := range list {
			if l, _ := layerOf(allowed + "/x"); l == nil && !slices.Contains(foundations, allowed) {
				t.Errorf("the imports of %s allow %s, which is no layer: remove it", name, allowed)
			}
		}
	}
}

func TestImportViolations(t *testing.T) {
	tests := map[string]struct {
		from, to string
		want     bool
	}{
		"api may import apimachinery":                            {"api/work/v1alpha1", "k8s.io/apimachinery/pkg/runtime", false},
		"api may not import client-go":                           {"api/work/v1alpha1", "k8s.io/client-go/rest", true},
		"api may not import internal packages":                   {"api/work/v1alpha1", module + "/internal/domain/work", true},
		"k8s.io/api does not cover k8s.io/apiserver":             {"api/work/v1alpha1", "k8s.io/apiserver", true},
		"pkg may import api":                                     {"pkg/webhook/interpreter", module + "/api/config/v1alpha1", false},
		"pkg may not import internal packages":                   {"pkg/webhook/interpreter", module + "/internal/domain/work", true},
		"examples may import pkg":                                {"examples/interpreter-webhook/workload", module + "/pkg/webhook/interpreter", false},
		"examples may not import internal packages":              {"examples/interpreter-webhook", module + "/internal/version", true},
		"domain may import strings":                              {"internal/domain/work", "strings", false},
		"domain may not import os":                               {"internal/domain/work", "os", true},
		"domain may not import unlisted libraries":               {"internal/domain/work", "github.com/google/uuid", true},
		"domain packages may import each other":                  {"internal/domain/work", module + "/internal/domain/binding", false},
		"controllers may import access":                          {"internal/controllers/execution", module + "/internal/access/member", false},
		"controllers may not import each other":                  {"internal/controllers/execution", module + "/internal/controllers/binding", true},
		"packages of one controller may import each other":       {"internal/controllers/execution", module + "/internal/controllers/execution/apply", false},
		"the scheduler may not import a controller":              {"internal/scheduler", module + "/internal/controllers/binding", true},
		"programs may import controllers":                        {"internal/programs", module + "/internal/controllers/binding", false},
		"programs may not import the command line":               {"internal/programs", module + "/internal/cli/membership", true},
		"commands may import the command line":                   {"cmd/karmadactl", module + "/internal/cli/membership", false},
		"no package may import a main package":                   {"internal/cli/up", module + "/cmd/karmada", true},
		"a package without a layer is a violation":               {"internal/util", "strings", true},
		"a package in the parent folder of units is a violation": {"internal/controllers", "strings", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			from := module + "/" + test.from
			g := importGraph{from: {ImportPath: from, Imports: []string{test.to}}}
			if got := importViolations(g); (len(got) > 0) != test.want {
				t.Errorf("%s importing %s: violations %q, want violations: %t", test.from, test.to, got, test.want)
			}
		})
	}
}

func importViolations(g importGraph) []string {
	var found []string
	for _, p := range g.modulePackages(false) {
		path := relativePath(p.ImportPath)
		l, unit := layerOf(path)
		if l == nil {
			found = append(found, fmt.Sprintf("%s has no layer: move it into the folder of a layer, or add a row to the table of layers and a line to docs/ARCHITECTURE.md", path))
			continue
		}
		for _, imported := range p.Imports {
			if !l.allows(unit, imported) {
				found = append(found, fmt.Sprintf("%s imports %s, which is not allowed in %s: %s", path, relativePath(imported), l.folder, l.reason))
			}
		}
	}
	return found
}

// layerOf returns the layer of a package and the folder of its unit.
func layerOf(path string) (l *layer, unit string) {
	for i := range layers {
		parent, isolated := strings.CutSuffix(layers[i].folder, "/*")
		switch {
		case !isWithin(path, parent) || isolated && path == parent:
			continue
		case isolated:
			below, _, _ := strings.Cut(strings.TrimPrefix(path, parent+"/"), "/")
			return &layers[i], parent + "/" + below
		default:
			return &layers[i], parent
		}
	}
	return nil, ""
}

func (l *layer) allows(unit, imported string) bool {
	switch firstElement, _, _ := strings.Cut(imported, "/"); {
	case isWithin(imported, module):
		path := relativePath(imported)
		return isWithin(path, unit) || isWithin(path, l.allowedFolders...)
	case !strings.Contains(firstElement, "."): // the standard library
		return !slices.Contains(l.forbidden, imported)
	default:
		return l.allowedLibraries == nil || isWithin(imported, l.allowedLibraries...)
	}
}

// relativePath returns the path of a package relative to this module.
func relativePath(path string) string {
	return strings.TrimPrefix(path, module+"/")
}

func TestLayerUnit(t *testing.T) {
	_, unit := layerOf("internal/controllers/execution/apply")
	if diff := cmp.Diff("internal/controllers/execution", unit); diff != "" {
		t.Errorf("unit (-want +got):\n%s", diff)
	}
}
