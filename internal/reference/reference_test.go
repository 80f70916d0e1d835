package reference

import (
	"flag"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/programs/flags"
)

var root = filepath.Join("..", "..")

var update = flag.Bool("update", false, "write the pages of docs/reference")

// TestPagesMatchTheTables compares the pages of docs/reference with the tables of the programs.
// "make generate" runs the test with -update, which writes the pages.
func TestPagesMatchTheTables(t *testing.T) {
	// Linked libraries register flags in the global flag set. Cobra would show these flags as flags
	// of each program.
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		file := filepath.Join(root, filepath.FromSlash(page.Path))
		if *update {
			if err := os.WriteFile(file, []byte(page.Content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		stored, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("reading a page, which \"make generate\" writes: %v", err)
		}
		if diff := cmp.Diff(string(stored), page.Content); diff != "" {
			t.Errorf("%s is outdated: run \"make generate\" (-page +tables):\n%s", page.Path, diff)
		}
	}
}

func mustReadSource(t *testing.T) *source {
	t.Helper()
	s, err := readSource(root)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEventReasonsHaveComments requires that the page contains exactly the reasons of recorded
// events.
func TestEventReasonsHaveComments(t *testing.T) {
	s := mustReadSource(t)
	for i := range s.constants {
		c := &s.constants[i]
		if !strings.HasPrefix(c.name, eventPrefix) {
			continue
		}
		ofCondition := slices.ContainsFunc(conditions.Table(), func(row conditions.Row) bool { return row.Reason == c.value })
		switch used := len(s.uses[c.key()]) > 0; {
		case used && c.comment == "":
			t.Errorf("%s is recorded, and has no comment: add one, because the page of events is made of the comments", c.key())
		case !used && c.comment != "" && !ofCondition:
			t.Errorf("%s is not recorded: remove its comment, so that the page of events does not have it", c.key())
		}
	}
}

// TestRecordersOfEventsHaveNames requires that each package that records an event declares the name with
// which it records events.
func TestRecordersOfEventsHaveNames(t *testing.T) {
	s := mustReadSource(t)
	recorded, _, err := events(s)
	if err != nil {
		t.Fatal(err)
	}
	names := append(slices.Collect(maps.Values(s.components)), slices.Collect(maps.Values(recorders()))...)
	for _, e := range recorded {
		for _, component := range e.components {
			if !slices.Contains(names, component) {
				t.Errorf("package %s records event %s: declare the constant Name with the event source in the package, or add a row to recorders in internal/reference/events.go", component, e.reason)
			}
		}
	}
}

// recordMethods are the methods that record events. argument is the index of the argument that
// contains the reason. kind is the type of the event.
var recordMethods = map[string]struct {
	argument int
	kind     string
}{
	"RecordDecision": {1, "Normal"}, "RecordSuccess": {1, "Normal"},
	"RecordFailure": {1, "Warning"}, "RecordClusterFailure": {2, "Warning"},
}

// TestRecordedEventsMatchThePage compares the calls that record events with the comments of the
// reasons. The reason in a call must not be a literal. The type must be the type in the comment.
func TestRecordedEventsMatchThePage(t *testing.T) {
	recorded, _, err := events(mustReadSource(t))
	if err != nil {
		t.Fatal(err)
	}
	s, calls := mustReadSource(t), 0
	check := func(folder string, file *ast.File) {
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || recordMethods[method.Sel.Name].kind == "" || len(call.Args) <= recordMethods[method.Sel.Name].argument {
				return true
			}
			calls++
			want := recordMethods[method.Sel.Name]
			switch reason := call.Args[want.argument].(type) {
			case *ast.BasicLit:
				t.Errorf("%s: the reason %s of an event is a literal: add a constant to api", folder, reason.Value)
			case *ast.SelectorExpr:
				at := slices.IndexFunc(recorded, func(e event) bool { return e.reason == s.valueOf(reason.Sel.Name) })
				if strings.HasPrefix(reason.Sel.Name, eventPrefix) && (at < 0 || !strings.Contains(recorded[at].kind, want.kind)) {
					t.Errorf("%s records %s with type %s: add the type to the comment of the constant", folder, reason.Sel.Name, want.kind)
				}
			}
			return true
		})
	}
	if err := forEachFile(root, "internal", check); err != nil {
		t.Fatal(err)
	}
	if calls < 50 {
		t.Errorf("only %d calls found that record events", calls)
	}
}

// TestConditionReasonsAreInTheTable requires that the table of conditions contains exactly the
// reasons that the code uses. Kinds without a controller are excluded.
func TestConditionReasonsAreInTheTable(t *testing.T) {
	s, rows := mustReadSource(t), map[string]bool{}
	byKind := map[string][]conditions.Row{}
	for _, row := range conditions.Table() {
		byKind[row.Kinds[0]] = append(byKind[row.Kinds[0]], row)
	}
	for _, ofKind := range byKind {
		if s.isWritten(ofKind) {
			for _, row := range ofKind {
				rows[row.Reason] = false
			}
		}
	}
	for i := range s.constants {
		c := &s.constants[i]
		if len(s.users(c)) == 0 {
			continue
		}
		if _, ok := rows[c.value]; ok {
			rows[c.value] = true
			continue
		}
		if isConditionReason(c.name) {
			t.Errorf("%s is used, and is no reason in the table of conditions: add a row", c.key())
		}
	}
	for reason, used := range rows {
		if !used {
			t.Errorf("no code writes a condition with reason %s: remove its row from the table of conditions", reason)
		}
	}
}

// isConditionReason reports whether the name of a constant is the name of a condition reason. The
// names of event reasons and of reasons of eviction tasks have other prefixes.
func isConditionReason(name string) bool {
	return strings.Contains(name, "Reason") && !strings.HasPrefix(name, eventPrefix) && !strings.HasPrefix(name, "EvictionReason")
}

// TestFlagsWithoutEffectAreMarked requires that a flag is marked if its help text says that it has
// no effect, and only then.
func TestFlagsWithoutEffectAreMarked(t *testing.T) {
	for _, program := range components.Programs() {
		command.New(program).Flags().VisitAll(func(flag *pflag.Flag) {
			if says := strings.Contains(flag.Usage, "Has no effect"); says == flags.HasEffect(flag) {
				t.Errorf("%s --%s: the help says that it has no effect: %t; the flag is marked: %t", program.Name, flag.Name, says, !flags.HasEffect(flag))
			}
		})
	}
}

func TestReadConstants(t *testing.T) {
	s := mustReadSource(t)
	at := slices.IndexFunc(s.constants, func(c constant) bool { return c.name == "EventReasonSyncFailed" })
	if at < 0 {
		t.Fatal("EventReasonSyncFailed is not found")
	}
	got := s.constants[at]
	got.comment, _, _ = strings.Cut(got.comment, ",")
	want := constant{folder: "api/work/v1alpha1", name: "EventReasonSyncFailed", value: "SyncFailed", comment: "EventReasonSyncFailed"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(constant{})); diff != "" {
		t.Errorf("constant (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"execution-controller"}, s.users(&want)); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
}

func TestMarkdownTable(t *testing.T) {
	tests := map[string]struct {
		rows [][]string
		want string
	}{
		"columns without a value are left out": {[][]string{{"a", "", "b"}, {"c", "", ""}}, "\n| x | z |\n|---|---|\n| a | b |\n| c |  |\n"},
		"special characters are escaped":       {[][]string{{cell("a|b <c>"), "d", code("e|f")}}, "\n| x | y | z |\n|---|---|---|\n| a\\|b &lt;c&gt; | d | `e\\|f` |\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := &markdown{}
			text.addTable([]string{"x", "y", "z"}, test.rows)
			if diff := cmp.Diff(test.want, text.String()); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}
