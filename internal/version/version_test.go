package version

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInfoStringHasAllFieldsInOrder(t *testing.T) {
	info := Info{
		GitVersion: "v1.2.3", GitCommit: "0123456789ab", GitShortCommit: "012345678", GitTreeState: "clean",
		BuildDate: "2026-01-02T03:04:05Z", GoVersion: "go1.26.8", Compiler: "gc", Platform: "linux/amd64",
	}
	want := `version.Info{GitVersion:"v1.2.3", GitCommit:"0123456789ab", GitShortCommit:"012345678", GitTreeState:"clean", ` +
		`BuildDate:"2026-01-02T03:04:05Z", GoVersion:"go1.26.8", Compiler:"gc", Platform:"linux/amd64"}`
	if diff := cmp.Diff(want, info.String()); diff != "" {
		t.Errorf("String() (-want +got):\n%s", diff)
	}
}

func TestLineNamesTheProgram(t *testing.T) {
	if line := Line("karmadactl"); !strings.HasPrefix(line, `karmadactl version: version.Info{GitVersion:"`) {
		t.Errorf("Line() = %q", line)
	}
}

func TestGetReturnsNoEmptyField(t *testing.T) {
	if line := Get().String(); strings.Contains(line, `""`) {
		t.Errorf("a field is empty: %s", line)
	}
}

func TestImageTagHasNoPlus(t *testing.T) {
	if got, want := (Info{GitVersion: "v0.1.0-dev+0a1b2c3d.dirty"}).ImageTag(), "v0.1.0-dev_0a1b2c3d.dirty"; got != want {
		t.Errorf("ImageTag() = %q, want %q", got, want)
	}
}

func TestBuildInfoFillsMissingFields(t *testing.T) {
	build := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.0.0"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	tests := map[string]struct {
		given Info
		build debug.BuildInfo
		want  Info
	}{
		"without linker values the toolchain values are used": {
			build: *build,
			want:  Info{GitVersion: "v1.0.0", GitCommit: "abc", GitTreeState: "dirty", BuildDate: "2026-01-02T03:04:05Z"},
		},
		"linker values have precedence": {
			given: Info{GitVersion: "v2.0.0", GitCommit: "def", GitTreeState: "clean", BuildDate: "2026-02-02T03:04:05Z"},
			build: *build,
			want:  Info{GitVersion: "v2.0.0", GitCommit: "def", GitTreeState: "clean", BuildDate: "2026-02-02T03:04:05Z"},
		},
		"a development build has no version": {
			build: debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			want:  Info{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.given.withBuildInfo(&test.build)); diff != "" {
				t.Errorf("completedFrom() (-want +got):\n%s", diff)
			}
		})
	}
}
