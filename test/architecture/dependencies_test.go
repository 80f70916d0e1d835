package architecture

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reachRule lists packages that a part of the module must not depend on, directly or
// indirectly.
type reachRule struct {
	rule string
	// from and except are folders relative to the root.
	from, except []string
	// tests applies the rule to tests too.
	tests bool
	// forbidden lists packages, including all packages below them. allowedPackages are
	// exceptions: they depend on the standard library only.
	forbidden, allowedPackages []string
	remedy                     string
}

// serverEmbedders lists the folders that may link Kubernetes and etcd servers.
var serverEmbedders = []string{
	"internal/standalone", "internal/testenv", "cmd/karmada", "cmd/karmada-apiserver",
	"test/integration", "test/e2e", "test/compat",
}

var reachRules = []reachRule{
	{
		rule: "only the standalone programs depend on Kubernetes and etcd servers",
		from: []string{"api", "internal", "cmd", "test"}, except: serverEmbedders, tests: true,
		forbidden: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdutl/v3", "sigs.k8s.io/kwok"},
		remedy:    "compiling them takes minutes: call internal/standalone from cmd/karmada only, and put tests that need a cluster into test/integration",
	},
	{
		rule: "API types and decisions do not depend on clients",
		from: []string{"api", "internal/domain"}, tests: true,
		forbidden:       []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/apiserver", "google.golang.org/grpc"},
		allowedPackages: []string{"k8s.io/client-go/util/jsonpath", "k8s.io/client-go/third_party/forked/golang/template"},
		remedy:          "pass in the values that the client would read",
	},
	{
		rule: "the command line does not link controllers into karmadactl",
		from: []string{"cmd/karmadactl", "cmd/kubectl-karmada"},
		forbidden: []string{
			module + "/internal/controllers", module + "/internal/scheduler",
			module + "/internal/programs", module + "/internal/servers",
		},
		remedy: "move shared code into internal/domain or internal/access",
	},
	{
		rule: "only tests install releases of Helm",
		from: []string{"internal", "cmd"}, tests: true,
		forbidden: []string{"helm.sh/helm/v4/pkg/action"},
		remedy:    "programs render the chart with internal/install/rendering; action links clients of registries and databases, so tests with it belong into test/e2e",
	},
}

func TestForbiddenDependencies(t *testing.T) {
	g := mustLoadGraph(t)
	for _, rule := range reachRules {
		t.Run(rule.rule, func(t *testing.T) {
			for _, chain := range rule.violatingChains(g) {
				t.Errorf("%s\n  remedy: %s", strings.Join(chain, "\n    imports "), rule.remedy)
			}
		})
	}
}

// A program that validates or uses time zones must not depend on the time zone files of the
// machine.
func TestProgramsLinkTimeZoneData(t *testing.T) {
	g := mustLoadGraph(t)
	for _, program := range []string{"cmd/karmada", "cmd/karmada-webhook"} {
		if g.importChain(module+"/"+program, func(at string) bool { return at == "time/tzdata" }) == nil {
			t.Errorf("%s does not link time/tzdata: import it in the package that loads time zones", program)
		}
	}
}

func TestForbiddenDependencyChains(t *testing.T) {
	g := importGraph{}
	link := func(from string, to ...string) {
		g[from] = &goPackage{ImportPath: from, Imports: to, DepOnly: !isWithin(from, module)}
	}
	cli := module + "/internal/cli"
	link(cli, "example.com/innocent", "fmt")
	link("example.com/innocent", "k8s.io/kubernetes/pkg/apis/core", "fmt")
	link(cli+".test", cli)
	link(module+"/internal/standalone", "k8s.io/kubernetes/cmd/kube-apiserver/app")

	want := [][]string{
		{cli, "example.com/innocent", "k8s.io/kubernetes/pkg/apis/core"},
		{cli + ".test", cli, "example.com/innocent", "k8s.io/kubernetes/pkg/apis/core"},
	}
	if diff := cmp.Diff(want, reachRules[0].violatingChains(g)); diff != "" {
		t.Errorf("violatingChains() (-want +got):\n%s", diff)
	}
}

// violatingChains returns the chains of imports that violate the rule, one for each
// package.
func (r reachRule) violatingChains(g importGraph) [][]string {
	var chains [][]string
	for _, p := range g.modulePackages(r.tests) {
		path := relativePath(strings.TrimSuffix(p.ImportPath, ".test"))
		if !isWithin(path, r.from...) || isWithin(path, r.except...) {
			continue
		}
		if chain := g.importChain(p.ImportPath, func(at string) bool { return isWithin(at, r.forbidden...) && !slices.Contains(r.allowedPackages, at) }); chain != nil {
			chains = append(chains, chain)
		}
	}
	return chains
}
