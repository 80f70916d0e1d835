package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// versionPin is the version, or the range of versions, that go.mod may require of a module.
type versionPin struct {
	module string
	// version is an exact version, or a prefix that ends with a dot.
	version string
	reason  string
}

// pins lists the versions of modules that must be upgraded together with Kubernetes.
var pins = []versionPin{
	{"k8s.io/kubernetes", "v1.36.3", "its staging modules below must be of the same release"},
	{"github.com/google/cel-go", "v0.26.", "the CEL environment of the API server requires it; never upgrade it alone"},
	{"go.etcd.io/etcd/server/v3", "v3.6.", "3.7 changes the storage format"},
	{"go.etcd.io/etcd/client/v3", "v3.6.", "client and server are released together"},
	{"go.etcd.io/etcd/etcdutl/v3", "v3.6.", "it writes files that the server reads"},
	{"go.etcd.io/etcd/api/v3", "v3.6.", "client and server are released together"},
	{"sigs.k8s.io/controller-runtime", "v0.24.", "0.25 needs a newer Kubernetes"},
}

const stagingVersion = "v0.36.3"

// nonStagingModules lists the modules under k8s.io with their own release cycle.
var nonStagingModules = []string{"k8s.io/kubernetes", "k8s.io/klog", "k8s.io/utils", "k8s.io/kube-openapi", "k8s.io/gengo"}

func TestModuleVersionPins(t *testing.T) {
	versions := readStagingVersions(t, "go.mod")
	for _, p := range pins {
		if version, ok := versions[p.module]; !ok {
			t.Errorf("go.mod does not require %s", p.module)
		} else if !p.accepts(version) {
			t.Errorf("%s is at %s instead of %s: %s", p.module, version, p.version, p.reason)
		}
	}
}

// TestNodeProgramsAreOfTheSameRelease checks the module of kubelet and kube-proxy, which has a go.mod of
// its own, because the programs of Karmada do not link its modules.
func TestNodeProgramsAreOfTheSameRelease(t *testing.T) {
	const module = "k8s.io/kubernetes"
	want := readStagingVersions(t, "go.mod")[module]
	if got := readStagingVersions(t, nodePrograms)[module]; got != want {
		t.Errorf("%s requires %s at %s: require %s, as go.mod does", nodePrograms, module, got, want)
	}
}

// nodePrograms is the go.mod of the programs of a node with real containers.
var nodePrograms = filepath.Join("test", "real", "programs", "go.mod")

// readStagingVersions returns the version of each module that a go.mod requires, and reports staging
// modules of another release.
func readStagingVersions(t *testing.T, name string) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, r := range readModFile(t, name).Require {
		versions[r.Mod.Path] = r.Mod.Version
		if isWithin(r.Mod.Path, "k8s.io") && !isWithin(r.Mod.Path, nonStagingModules...) && r.Mod.Version != stagingVersion {
			t.Errorf("%s: %s is at %s: every staging module stays at %s, the release of k8s.io/kubernetes; find the module that requires it with: go mod graph | grep %q",
				name, r.Mod.Path, r.Mod.Version, stagingVersion, r.Mod.Path+"@"+r.Mod.Version)
		}
	}
	return versions
}

func TestVersionPinAccepts(t *testing.T) {
	tests := map[string]struct {
		pin, version string
		want         bool
	}{
		"an exact version":                          {"v1.36.3", "v1.36.3", true},
		"a version with the same prefix":            {"v1.36.3", "v1.36.30", false},
		"any patch release of a minor version":      {"v0.26.", "v0.26.7", true},
		"a minor version with the same first digit": {"v0.2.", "v0.26.7", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (versionPin{version: test.pin}).accepts(test.version); got != test.want {
				t.Errorf("pin %s accepts %s: %t, want %t", test.pin, test.version, got, test.want)
			}
		})
	}
}

func (v versionPin) accepts(version string) bool {
	return version == v.version || strings.HasSuffix(v.version, ".") && strings.HasPrefix(version, v.version)
}

// Modules that require this module ignore its replace directives. Therefore the module must
// build without them.
func TestNoReplaceDirectives(t *testing.T) {
	for _, name := range []string{"go.mod", filepath.Join("tools", "go.mod"), nodePrograms} {
		for _, r := range readModFile(t, name).Replace {
			local := slices.Contains([]string{"..", "../"}, r.New.Path) && name != "go.mod"
			if !local {
				t.Errorf("%s replaces %s: require a version that works instead", name, r.Old.Path)
			}
		}
	}
}

func readModFile(t *testing.T, name string) *modfile.File {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repositoryRoot, name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(name, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
