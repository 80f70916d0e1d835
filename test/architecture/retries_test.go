package architecture

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// retryPackage is the only package that defines retry delays.
const retryPackage = "internal/loop"

func TestControllersUseRetryOptions(t *testing.T) {
	for _, s := range readSources(t) {
		if !isWithin(s.path, "internal") || isWithin(s.path, retryPackage) || !s.isGo() || strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, problem := range findSlowRetries(t, s.path, s.content) {
			t.Errorf("%s\n  rule: failed requests are retried within one minute, unless configured otherwise\n  remedy: take the options from queues.Options", problem)
		}
	}
}

func TestFindSlowRetries(t *testing.T) {
	tests := map[string]struct {
		code string
		want []string
	}{
		"new options":       {"var o = controller.Options{}", []string{"x.go:2:9: makes its own controller options"}},
		"new typed options": {"var o = controller.TypedOptions[item]{}", []string{"x.go:2:9: makes its own controller options"}},
		"the default rate limiter of client-go": {
			"var l = workqueue.DefaultTypedControllerRateLimiter[item]()", []string{"x.go:2:9: uses workqueue.DefaultTypedControllerRateLimiter"},
		},
		"a builder without options":       {"var e = builder.ControllerManagedBy(m).Complete(r)", []string{"x.go: builds 1 controllers, 0 of them with options"}},
		"a typed builder without options": {"var e = builder.TypedControllerManagedBy[item](m).Complete(r)", []string{"x.go: builds 1 controllers, 0 of them with options"}},
		"a builder with options":          {"var e = builder.ControllerManagedBy(m).WithOptions(queues.Options[item](m, 1, b)).Complete(r)", nil},
		"options of another package":      {"var o = fanout.Options{}", nil},
		"options as a parameter":          {"func f(o controller.TypedOptions[item]) {}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := findSlowRetries(t, "x.go", []byte("package x\n"+test.code))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("slow retries (-want +got):\n%s", diff)
			}
		})
	}
}

func findSlowRetries(t *testing.T, path string, content []byte) []string {
	t.Helper()
	file, at := parseGo(t, path, content)
	var found []string
	builders, withOptions := 0, 0
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			if slices.Contains([]string{"controller.Options", "controller.TypedOptions"}, qualifiedName(node.Type)) {
				found = append(found, fmt.Sprintf("%s: makes its own controller options", at(node)))
			}
		case *ast.SelectorExpr:
			switch name := qualifiedName(node); {
			case strings.HasPrefix(name, "workqueue.Default"):
				found = append(found, fmt.Sprintf("%s: uses %s", at(node), name))
			case name == "builder.ControllerManagedBy", name == "builder.TypedControllerManagedBy":
				builders++
			case node.Sel.Name == "WithOptions":
				withOptions++
			}
		}
		return true
	})
	if builders > withOptions {
		found = append(found, fmt.Sprintf("%s: builds %d controllers, %d of them with options", path, builders, withOptions))
	}
	return found
}

// qualifiedName returns the package and name of a type or function, without its type
// arguments.
func qualifiedName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.IndexExpr:
		return qualifiedName(of.X)
	case *ast.SelectorExpr:
		if from, ok := of.X.(*ast.Ident); ok {
			return from.Name + "." + of.Sel.Name
		}
	}
	return ""
}
