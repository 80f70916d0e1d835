package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shellBlock matches a block of commands in a page.
var shellBlock = regexp.MustCompile("(?ms)^```(?:sh|bash)\n(.*?)^```$")

// karmadaCommand matches a line that runs karmada or karmadactl.
var karmadaCommand = regexp.MustCompile(`(?m)^(\w+=\S+ )*karmada(ctl)? `)

const exportPath = "export PATH=$PWD/bin:$PATH\n"

// TestDocsRunProgramsByName checks that the pages run the programs by name, after one line
// that adds bin to PATH.
func TestDocsRunProgramsByName(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repositoryRoot, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages found: %v", err)
	}
	for _, path := range pages {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if problem := commandProblem(string(text)); problem != "" {
			t.Errorf("docs/%s %s", filepath.Base(path), problem)
		}
	}
}

// commandProblem returns the problem with the commands of a page, or an empty string.
func commandProblem(page string) string {
	if strings.Contains(page, "bin/karmada") {
		return "runs a program by its path: write karmadactl or karmada"
	}
	var commands strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		commands.WriteString(block[1])
	}
	before, _, found := strings.Cut(commands.String(), exportPath)
	first := karmadaCommand.FindStringIndex(commands.String())
	switch {
	case first == nil:
		return ""
	case !found || first[0] < len(before):
		return "runs a program before the line " + strings.TrimSpace(exportPath)
	case strings.Count(commands.String(), exportPath) > 1:
		return "has the line " + strings.TrimSpace(exportPath) + " more than once"
	}
	return ""
}

func TestCommandProblem(t *testing.T) {
	const open, end = "```sh\n", "```\n"
	tests := map[string]struct{ page, want string }{
		"no commands":             {"text about `karmadactl get`\n", ""},
		"the export first":        {open + exportPath + "karmada up\n" + end + open + "karmadactl get rb\n" + end, ""},
		"no export":               {open + "karmadactl get rb\n" + end, "before the line"},
		"the export too late":     {open + "A=b karmada up\n" + exportPath + end, "before the line"},
		"two exports":             {open + exportPath + exportPath + "karmada up\n" + end, "more than once"},
		"a path":                  {open + "bin/karmadactl get rb\n" + end, "by its path"},
		"output is not a command": {"```console\nkarmadactl register\n```\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := commandProblem(test.page)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
