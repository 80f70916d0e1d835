package architecture

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// retrying is the one package that says how long what failed waits.
const retrying = "internal/access/queues"

func TestEveryControllerTriesAgainSoon(t *testing.T) {
	for _, s := range sources(t) {
		if !within(s.path, "internal") || within(s.path, retrying) || !s.isGo() || strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, problem := range slowRetries(t, s.path, s.content) {
			t.Errorf("%s\n  rule: what failed is tried again within a minute, where nobody asked for less\n  remedy: take the options from queues.Options", problem)
		}
	}
}

func TestSlowRetriesAreFound(t *testing.T) {
	tests := map[string]struct {
		code string
		want []string
	}{
		"options of its own":        {"var o = controller.Options{}", []string{"x.go:2:9: makes its own controller options"}},
		"options of its own, typed": {"var o = controller.TypedOptions[item]{}", []string{"x.go:2:9: makes its own controller options"}},
		"the limits of Kubernetes": {
			"var l = workqueue.DefaultTypedControllerRateLimiter[item]()", []string{"x.go:2:9: uses workqueue.DefaultTypedControllerRateLimiter"},
		},
		"a builder without options":      {"var e = builder.ControllerManagedBy(m).Complete(r)", []string{"x.go: builds 1 controllers, 0 of them with options"}},
		"a builder without, typed":       {"var e = builder.TypedControllerManagedBy[item](m).Complete(r)", []string{"x.go: builds 1 controllers, 0 of them with options"}},
		"a builder with options":         {"var e = builder.ControllerManagedBy(m).WithOptions(queues.Options[item](m, 1, b)).Complete(r)", nil},
		"options that are another's":     {"var o = fanout.Options{}", nil},
		"a parameter that takes options": {"func f(o controller.TypedOptions[item]) {}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := slowRetries(t, "x.go", []byte("package x\n"+test.code))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("slow retries (-want +got):\n%s", diff)
			}
		})
	}
}

func slowRetries(t *testing.T, path string, content []byte) []string {
	t.Helper()
	file, at := parse(t, path, content)
	var found []string
	built, told := 0, 0
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if slices.Contains([]string{"controller.Options", "controller.TypedOptions"}, qualified(node.Type)) {
				found = append(found, fmt.Sprintf("%s: makes its own controller options", at(node)))
			}
		case *ast.SelectorExpr:
			switch name := qualified(node); {
			case strings.HasPrefix(name, "workqueue.Default"):
				found = append(found, fmt.Sprintf("%s: uses %s", at(node), name))
			case name == "builder.ControllerManagedBy", name == "builder.TypedControllerManagedBy":
				built++
			case node.Sel.Name == "WithOptions":
				told++
			}
		}
		return true
	})
	if built > told {
		found = append(found, fmt.Sprintf("%s: builds %d controllers, %d of them with options", path, built, told))
	}
	return found
}

// qualified is the name of a type or function of a package, without its type
// arguments.
func qualified(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.IndexExpr:
		return qualified(of.X)
	case *ast.SelectorExpr:
		if from, ok := of.X.(*ast.Ident); ok {
			return from.Name + "." + of.Sel.Name
		}
	}
	return ""
}
