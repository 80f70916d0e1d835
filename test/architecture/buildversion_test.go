package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVersionOfTheBuildIsSemantic runs the script that computes the version for the Makefile.
func TestVersionOfTheBuildIsSemantic(t *testing.T) {
	script, err := filepath.Abs("../../tools/version")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		tag              string
		isLater, isDirty bool
		want             string
	}{
		"a commit without a tag":                  {want: `v0\.0\.0-dev\+[0-9a-f]{8}`},
		"a changed tree without a tag":            {isDirty: true, want: `v0\.0\.0-dev\+[0-9a-f]{8}\.dirty`},
		"a release":                               {tag: "v0.3.9", want: `v0\.3\.9`},
		"a changed tree of a release":             {tag: "v0.3.9", isDirty: true, want: `v0\.3\.10-dev\+[0-9a-f]{8}\.dirty`},
		"a commit after a release":                {tag: "v0.3.9", isLater: true, want: `v0\.3\.10-dev\+[0-9a-f]{8}`},
		"a release candidate":                     {tag: "v0.4.0-rc.1", want: `v0\.4\.0-rc\.1`},
		"a commit after a release candidate":      {tag: "v0.4.0-rc.1", isLater: true, want: `v0\.4\.0-rc\.1\.dev\+[0-9a-f]{8}`},
		"a commit whose tag is no version":        {tag: "nightly", want: `v0\.0\.0-dev\+[0-9a-f]{8}`},
		"a commit after a tag that is no version": {tag: "nightly", isLater: true, want: `v0\.0\.0-dev\+[0-9a-f]{8}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			repository := t.TempDir()
			run := func(program string, args ...string) string {
				command := exec.CommandContext(t.Context(), program, args...)
				command.Dir = repository
				command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
				output, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %q: %v: %s", program, args, err, output)
				}
				return strings.TrimSpace(string(output))
			}
			run("git", "init", "--quiet")
			run("git", "commit", "--quiet", "--allow-empty", "--message", "first")
			if test.tag != "" {
				run("git", "tag", test.tag)
			}
			if test.isLater {
				run("git", "commit", "--quiet", "--allow-empty", "--message", "second")
			}
			if test.isDirty {
				run("touch", "new")
			}
			if got := run(script); !regexp.MustCompile(`^` + test.want + `$`).MatchString(got) {
				t.Errorf("the version is %q, want %s", got, test.want)
			}
		})
	}
}
