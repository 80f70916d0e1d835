package architecture

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reach says what a part of the module must not depend on, however indirectly.
type reach struct {
	rule string
	// from and except are folders relative to the top.
	from, except []string
	// tests makes the rule hold for tests too.
	tests bool
	// target lists packages; a path counts with all below it, apart from those that
	// leaves names: they depend on nothing but the standard library.
	target, leaves []string
	remedy         string
}

// embedding lists the folders that may link Kubernetes and etcd servers.
var embedding = []string{
	"internal/standalone", "internal/testenv", "cmd/karmada", "cmd/karmada-apiserver",
	"test/integration", "test/e2e", "test/compat",
}

var reaches = []reach{
	{
		rule: "only the standalone programs reach Kubernetes and etcd servers",
		from: []string{"api", "internal", "cmd", "test"}, except: embedding, tests: true,
		target: []string{"k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdutl/v3", "sigs.k8s.io/kwok"},
		remedy: "compiling them takes minutes: call internal/standalone from cmd/karmada only, and put tests that need a cluster into test/integration",
	},
	{
		rule: "types and decisions do not reach clients",
		from: []string{"api", "internal/domain"}, tests: true,
		target: []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/apiserver", "google.golang.org/grpc"},
		leaves: []string{"k8s.io/client-go/util/jsonpath", "k8s.io/client-go/third_party/forked/golang/template"},
		remedy: "pass in the values that the client would have fetched",
	},
	{
		rule: "the command line does not link controllers into karmadactl",
		from: []string{"cmd/karmadactl", "cmd/kubectl-karmada"},
		target: []string{
			module + "/internal/controllers", module + "/internal/scheduler",
			module + "/internal/programs", module + "/internal/servers",
		},
		remedy: "move the code that both need into internal/domain or internal/access",
	},
}

func TestPackagesDoNotReachWhatTheyMustNot(t *testing.T) {
	g := load(t)
	for _, rule := range reaches {
		t.Run(rule.rule, func(t *testing.T) {
			for _, chain := range rule.broken(g) {
				t.Errorf("%s\n  remedy: %s", strings.Join(chain, "\n    imports "), rule.remedy)
			}
		})
	}
}

// A program that judges time zones must know them all, whatever the machine holds.
func TestProgramsThatJudgeTimeZonesBringThem(t *testing.T) {
	g := load(t)
	for _, program := range []string{"cmd/karmada", "cmd/karmada-webhook"} {
		if g.way(module+"/"+program, func(at string) bool { return at == "time/tzdata" }) == nil {
			t.Errorf("%s does not link time/tzdata: import it where time zones are loaded", program)
		}
	}
}

func TestIndirectImportsAreFound(t *testing.T) {
	g := graph{}
	link := func(from string, to ...string) {
		g[from] = &pkg{ImportPath: from, Imports: to, DepOnly: !within(from, module)}
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
	if diff := cmp.Diff(want, reaches[0].broken(g)); diff != "" {
		t.Errorf("broken() (-want +got):\n%s", diff)
	}
}

// broken returns the chains of imports that break the rule, one for each package.
func (r reach) broken(g graph) [][]string {
	var chains [][]string
	for _, p := range g.own(r.tests) {
		path := relative(strings.TrimSuffix(p.ImportPath, ".test"))
		if !within(path, r.from...) || within(path, r.except...) {
			continue
		}
		if chain := g.way(p.ImportPath, func(at string) bool { return within(at, r.target...) && !slices.Contains(r.leaves, at) }); chain != nil {
			chains = append(chains, chain)
		}
	}
	return chains
}
