package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shellBlock is what a page gives to type.
var shellBlock = regexp.MustCompile("(?ms)^```(?:sh|bash)\n(.*?)^```$")

// karmadaCommand is a line that runs a program of ours.
var karmadaCommand = regexp.MustCompile(`(?m)^(\w+=\S+ )*karmada(ctl)? `)

const exportPath = "export PATH=$PWD/bin:$PATH\n"

// TestDocsRunProgramsByName keeps what users copy alike: the programs by their
// names, after one line that makes the shell find them.
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

// commandProblem returns what is wrong with the way in which a page runs our programs,
// empty if nothing is.
func commandProblem(page string) string {
	if strings.Contains(page, "bin/karmada") {
		return "names a program by its path: write karmadactl or karmada"
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
		"no commands":         {"text about `karmadactl get`\n", ""},
		"the export first":    {open + exportPath + "karmada up\n" + end + open + "karmadactl get rb\n" + end, ""},
		"no export":           {open + "karmadactl get rb\n" + end, "before the line"},
		"the export too late": {open + "A=b karmada up\n" + exportPath + end, "before the line"},
		"two exports":         {open + exportPath + exportPath + "karmada up\n" + end, "more than once"},
		"a path":              {open + "bin/karmadactl get rb\n" + end, "by its path"},
		"output is no call":   {"```console\nkarmadactl register\n```\n", ""},
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
