package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is a block of commands of a page, with the output that the page shows.
type step struct{ commands, output string }

// codeBlock matches a fenced block: its language and its text.
var codeBlock = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// fileName matches the first line of a manifest that the reader saves in a file.
var fileName = regexp.MustCompile(`\A# ([\w.-]+\.yaml)\n`)

// parseSteps parses a page. Blocks in sh are commands, which run in order and in one shell. A yaml
// block whose first line names a file becomes the command that writes this file. A console block is
// the output of the commands before it. Other blocks are ignored.
func parseSteps(page string) []step {
	var steps []step
	for _, block := range codeBlock.FindAllStringSubmatch(page, -1) {
		switch language, text := block[1], block[2]; {
		case language == "sh":
			steps = append(steps, step{commands: text})
		case language == "yaml" && fileName.MatchString(text):
			name := fileName.FindStringSubmatch(text)[1]
			steps = append(steps, step{commands: "cat > " + name + " <<'END OF FILE'\n" + text + "END OF FILE\n"})
		case language == "console" && len(steps) > 0:
			steps[len(steps)-1].output += text
		}
	}
	return steps
}

func TestREADMESteps(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []step
	for _, step := range parseSteps(string(page)) {
		// This test runs as part of make test.
		if step.commands != "make test\n" {
			steps = append(steps, step)
		}
	}
	if len(steps) < 3 || steps[0].commands != "make demo\n" {
		t.Fatalf("the README must have at least three steps and begin with make demo: %q", steps)
	}
	checkSteps(t, steps)
}

func TestTeachAKindSteps(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "teach-a-kind.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := parseSteps(string(page))
	if len(steps) < 12 {
		t.Fatalf("the page must have at least twelve steps: %q", steps)
	}
	checkSteps(t, steps)
}

// checkSteps runs the steps of a page, and checks that they print what the page shows. The steps must
// end with the removal of the installation that they start.
func checkSteps(t *testing.T, steps []step) {
	t.Helper()
	home := t.TempDir()
	installed := &installation{dir: filepath.Join(home, ".karmada")}
	t.Cleanup(installed.remove)
	for n, printed := range runInShell(t, home, steps) {
		if missing := firstMissingLine(steps[n].output, printed); missing != "" {
			t.Errorf("%s\ndoes not print the line %q in this order, but:\n%s", steps[n].commands, missing, printed)
		}
	}
	if running, err := installed.processCommandLines(); err != nil || len(running) > 0 {
		t.Errorf("after the last step these processes still run: %q (%v)", running, err)
	}
	if _, err := os.Stat(installed.dir); !os.IsNotExist(err) {
		t.Errorf("after the last step %s exists (%v)", installed.dir, err)
	}
}

// runInShell runs the steps in one shell with a separate home directory, and returns the
// output of each step.
func runInShell(t *testing.T, home string, steps []step) []string {
	t.Helper()
	const separator = "-- next step --\n"
	var script strings.Builder
	for _, step := range steps {
		script.WriteString(step.commands + "printf -- '" + strings.TrimSuffix(separator, "\n") + "\\n'\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", script.String())
	cmd.Dir = repositoryRoot
	cmd.Env = append(cleanEnvironment(), buildEnvironment(t)...)
	cmd.Env = append(cmd.Env, "HOME="+home, "PATH="+writeKubectl(t)+":"+os.Getenv("PATH"))
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, printed.String())
	}
	return strings.Split(strings.TrimSuffix(printed.String(), separator), separator)
}

// buildEnvironment returns variables for the files in the real home directory that a build
// needs: caches, and settings of Go and Git.
func buildEnvironment(t *testing.T) []string {
	t.Helper()
	var kept []string
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOENV"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatalf("reading go env %s: %v", name, err)
		}
		kept = append(kept, name+"="+strings.TrimSpace(string(value)))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return append(kept, "GIT_CONFIG_GLOBAL="+filepath.Join(home, ".gitconfig"))
}

// variableParts are the parts of the output that differ between runs.
var variableParts = []struct {
	form *regexp.Regexp
	name string
}{
	{regexp.MustCompile(`\bv1\.\d+\.\d+\S*`), "VERSION"},
	{regexp.MustCompile(`process \d+`), "process PID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\b\d+(\.\d+)?[smh](\d+s)?\b`), "TIME"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

func normalizedLines(text string) []string {
	for _, variable := range variableParts {
		text = variable.form.ReplaceAllString(text, variable.name)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// firstMissingLine compares the lines of shown with those of printed, in order. It returns
// the first line of shown that printed lacks, or an empty string if printed lacks none.
func firstMissingLine(shown, printed string) string {
	remaining := normalizedLines(printed)
	for _, line := range normalizedLines(shown) {
		found := false
		for n, candidate := range remaining {
			if candidate == line {
				remaining, found = remaining[n+1:], true
				break
			}
		}
		if !found {
			return line
		}
	}
	return ""
}

func TestParseSteps(t *testing.T) {
	page := "# Title\n```sh\none\ntwo\n```\ntext\n```console\nshown\n```\n```bash\nto be read\n```\n```yaml\na: 1\n```\n" +
		"```yaml\n# a-file.yaml\na: 1\n```\n```sh\nthree\n```\n"
	want := []step{
		{"one\ntwo\n", "shown\n"},
		{"cat > a-file.yaml <<'END OF FILE'\n# a-file.yaml\na: 1\nEND OF FILE\n", ""},
		{"three\n", ""},
	}
	if diff := cmp.Diff(want, parseSteps(page), cmp.AllowUnexported(step{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFirstMissingLine(t *testing.T) {
	tests := map[string]struct {
		shown, printed, want string
	}{
		"different ages and versions": {"web  v1.36.3  66s\n", "web v1.37.0-rc.1  2m3s\n", ""},
		"additional lines":            {"a\nc\n", "a\nb\nc\n", ""},
		"different replicas":          {"nginx 2/1\n", "nginx 1/1\n", "nginx 2/1"},
		"different order":             {"a\nb\n", "b\na\n", "b"},
		"different image tag":         {"nginx:1.19\n", "nginx:1.20\n", "nginx:1.19"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := firstMissingLine(test.shown, test.printed); got != test.want {
				t.Errorf("missing %q, want %q", got, test.want)
			}
		})
	}
}
