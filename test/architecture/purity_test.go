package architecture

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// impureFunctions lists functions that a decision must not use, because their results do
// not depend on its arguments only.
var impureFunctions = map[string][]string{
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"context": {"TODO", "Background"},
	"metav1":  {"Now", "NowMicro"},
}

func TestDomainIsPure(t *testing.T) {
	for _, s := range readSources(t) {
		if !isWithin(s.path, "internal/domain") || !s.isGo() || strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, problem := range findImpureCode(t, s.path, s.content) {
			t.Errorf("%s\n  rule: internal/domain holds pure functions\n  remedy: take the value as an argument, and do the work in the caller", problem)
		}
	}
}

func TestFindImpureCode(t *testing.T) {
	tests := map[string]struct {
		code string
		want []string
	}{
		"reading the clock":          {"func f() { _ = time.Now() }", []string{"x.go:2:16: uses time.Now"}},
		"using the clock as a value": {"var clock = time.Now", []string{"x.go:2:13: uses time.Now"}},
		"starting a goroutine":       {"func f() { go f() }", []string{"x.go:2:12: starts a goroutine"}},
		"an init function":           {"func init() {}", []string{"x.go:2:1: has an init function"}},
		"arithmetic with times":      {"func f(now time.Time) time.Time { return now.Add(time.Second) }", nil},
		"a method named init":        {"func (t T) init() {}", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := findImpureCode(t, "x.go", []byte("package x\n"+test.code))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("impurities (-want +got):\n%s", diff)
			}
		})
	}
}

func findImpureCode(t *testing.T, path string, content []byte) []string {
	t.Helper()
	file, at := parseGo(t, path, content)
	var found []string
	report := func(node ast.Node, format string, arguments ...any) {
		found = append(found, fmt.Sprintf("%s: %s", at(node), fmt.Sprintf(format, arguments...)))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			report(node, "starts a goroutine")
		case *ast.FuncDecl:
			if node.Recv == nil && node.Name.Name == "init" {
				report(node, "has an init function")
			}
		case *ast.SelectorExpr:
			if from, ok := node.X.(*ast.Ident); ok && slices.Contains(impureFunctions[from.Name], node.Sel.Name) {
				report(node, "uses %s.%s", from.Name, node.Sel.Name)
			}
		}
		return true
	})
	return found
}
