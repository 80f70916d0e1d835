// Package version describes the build of this program.
//
// The Makefile sets the values at link time. A program that was built with a plain go build or
// go install uses the values that the Go toolchain recorded, so that no field is empty.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker (-X). Empty in a build without the Makefile.
var (
	gitVersion   string
	gitCommit    string
	gitTreeState string
	buildDate    string
)

const (
	// unreleased is the version of a build without a tag.
	unreleased = "v0.0.0-dev"
	unknown    = "unknown"

	shortCommitLength = 9
)

// Info identifies a build. The names of its fields are part of the output of the version
// commands.
type Info struct {
	// GitVersion is a semantic version: that of the release, or that of a development build, which
	// ends with the commit. tools/version computes it.
	GitVersion string `json:"gitVersion"`
	// GitCommit is the full hash of the commit.
	GitCommit string `json:"gitCommit"`
	// GitShortCommit is the beginning of GitCommit.
	GitShortCommit string `json:"gitShortCommit"`
	// GitTreeState is "clean", or "dirty" if files differed from the commit.
	GitTreeState string `json:"gitTreeState"`
	// BuildDate is the time of the commit in RFC 3339, so that the same source
	// gives the same program.
	BuildDate string `json:"buildDate"`
	// GoVersion, Compiler and Platform describe the toolchain and the target of the build.
	GoVersion string `json:"goVersion"`
	Compiler  string `json:"compiler"`
	Platform  string `json:"platform"`
}

// Get returns the identity of the running program.
func Get() Info {
	info := Info{
		GitVersion:   gitVersion,
		GitCommit:    gitCommit,
		GitTreeState: gitTreeState,
		BuildDate:    buildDate,
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		info = info.withBuildInfo(build)
	}
	info.GitVersion = cmp.Or(info.GitVersion, unreleased)
	info.GitCommit = cmp.Or(info.GitCommit, unknown)
	info.GitTreeState = cmp.Or(info.GitTreeState, unknown)
	info.BuildDate = cmp.Or(info.BuildDate, unknown)
	info.GitShortCommit = info.GitCommit[:min(len(info.GitCommit), shortCommitLength)]
	return info
}

// ImageTag returns the version as the tag of an image, which cannot contain the + of a version. The
// build gives the image this tag.
func (i Info) ImageTag() string { return strings.ReplaceAll(i.GitVersion, "+", "_") }

// withBuildInfo fills the fields that the linker did not set with the values of the toolchain.
func (i Info) withBuildInfo(build *debug.BuildInfo) Info {
	if build.Main.Version != "(devel)" {
		i.GitVersion = cmp.Or(i.GitVersion, build.Main.Version)
	}
	for _, setting := range build.Settings {
		switch setting.Key {
		case "vcs.revision":
			i.GitCommit = cmp.Or(i.GitCommit, setting.Value)
		case "vcs.time":
			i.BuildDate = cmp.Or(i.BuildDate, setting.Value)
		case "vcs.modified":
			i.GitTreeState = cmp.Or(i.GitTreeState, treeState(setting.Value == "true"))
		}
	}
	return i
}

func treeState(modified bool) string {
	if modified {
		return "dirty"
	}
	return "clean"
}

// String returns the output format of the version of every program:
// version.Info{GitVersion:"...", ...}.
func (i Info) String() string {
	type plain Info // a type without this method, because %#v must not call it
	return fmt.Sprintf("version.Info{%s", fmt.Sprintf("%#v", plain(i))[len("version.plain{"):])
}

// Line returns the complete output of a program's version command.
func Line(program string) string {
	return fmt.Sprintf("%s version: %s", program, Get())
}
