package architecture

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wireDomain matches a name in the domain of Karmada: an API group, a label, an annotation, a
// finalizer or a taint. It does not match import paths and the address of the web site.
var wireDomain = regexp.MustCompile(`(?:^|[^/\w])((?:[a-z0-9-]*\.)*karmada\.io(?:/[a-z][a-z0-9-]*)?)`)

// wireConstant matches the names of constants of api whose values occur in stored objects.
var wireConstant = regexp.MustCompile(`Label|Annotation|Finalizer|Taint|GroupName|Namespace|Prefix`)

// wireExemptions maps a file, or a folder that ends with a slash, to the reason why it may
// contain wire names.
var wireExemptions = map[string]string{
	"test/bench/": "the benchmark also measures other versions of Karmada, and does not use the Go types of this one",
}

// TestWireNamesAreInAPI requires that each wire name is a constant beside its API group, so that
// all writers and readers use the same name.
func TestWireNamesAreInAPI(t *testing.T) {
	sources := readSources(t)
	constants := apiNames(t, sources)
	if len(constants) < 40 {
		t.Fatalf("only %d wire names found in api", len(constants))
	}
	used := map[string]bool{}
	for _, s := range sources {
		if !isCheckedForWireNames(s) {
			continue
		}
		file, at := parseGo(t, s.path, s.content)
		for _, literal := range stringLiterals(file) {
			name := wireNameIn(literal.value, constants)
			if name == "" {
				continue
			}
			if exemption := exemptionOf(s.path); exemption != "" {
				used[exemption] = true
				continue
			}
			t.Errorf("%s contains the wire name %s: use its constant, or add a constant beside its group in api", at(literal.node), name)
		}
	}
	for exemption := range wireExemptions {
		if !used[exemption] {
			t.Errorf("%s needs no exemption: remove it", exemption)
		}
	}
}

// isCheckedForWireNames reports whether the rule applies to a file: it is Go code that is neither a
// test, nor generated, nor in api, nor part of the module of the tools.
func isCheckedForWireNames(s source) bool {
	return s.isGo() && !strings.HasSuffix(s.path, "_test.go") && !s.isGenerated() && !isWithin(s.path, "api", "tools")
}

func exemptionOf(file string) string {
	for exemption := range wireExemptions {
		if file == exemption || strings.HasSuffix(exemption, "/") && strings.HasPrefix(file, exemption) {
			return exemption
		}
	}
	return ""
}

// apiNames returns the values of the constants of api that are wire names. Values of a single
// word are left out, because they have other meanings elsewhere.
func apiNames(t *testing.T, sources []source) []string {
	t.Helper()
	var names []string
	for _, s := range sources {
		if !s.isGo() || !isWithin(s.path, "api") || strings.HasSuffix(s.path, "_test.go") || s.isGenerated() {
			continue
		}
		file, _ := parseGo(t, s.path, s.content)
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, value := range spec.Values {
				literal, ok := value.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING || !wireConstant.MatchString(spec.Names[i].Name) {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && strings.ContainsAny(text, "-./") {
					names = append(names, text)
				}
			}
			return true
		})
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) }) // the longest name first
	return slices.Compact(names)
}

// wireNameIn returns the first wire name in a text, or an empty string.
func wireNameIn(text string, constants []string) string {
	if found := wireDomain.FindStringSubmatch(text); found != nil && found[1] != module {
		return found[1]
	}
	for _, name := range constants {
		if strings.Contains(text, name) {
			return name
		}
	}
	return ""
}

// stringLiteral is a string in Go code.
type stringLiteral struct {
	node  ast.Node
	value string
}

// stringLiterals returns the strings of a file, without import paths and struct tags.
func stringLiterals(file *ast.File) []stringLiteral {
	var found []stringLiteral
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			node.Tag = nil
		case *ast.BasicLit:
			if value, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
				found = append(found, stringLiteral{node, value})
			}
		}
		return true
	})
	return found
}

func TestWireNameIn(t *testing.T) {
	constants := []string{"multicluster.x-k8s.io", "karmada-es-"}
	tests := map[string]struct{ text, want string }{
		"a group":                           {"work.karmada.io", "work.karmada.io"},
		"a label":                           {"karmada.io/managed", "karmada.io/managed"},
		"a suffix":                          {".karmada.io", ".karmada.io"},
		"a name in a text":                  {"set work.karmada.io/conflict-resolution=overwrite", "work.karmada.io/conflict-resolution"},
		"a constant of api in a text":       {"the namespace karmada-es-east", "karmada-es-"},
		"a group of another domain":         {"multicluster.x-k8s.io/v1alpha1", "multicluster.x-k8s.io"},
		"the web site is not a wire name":   {"see https://karmada.io/docs", ""},
		"the module is not a wire name":     {"karmada.io/karmada", ""},
		"a name of Kubernetes is not ours":  {"node.kubernetes.io/role", ""},
		"the name of a program is not ours": {"karmada-agent", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, wireNameIn(test.text, constants)); diff != "" {
				t.Errorf("wire name (-want +got):\n%s", diff)
			}
		})
	}
}
