// Command image writes Karmada's container image without a container engine.
//
//	image --version VERSION --ldflags LDFLAGS [--platforms linux/amd64,linux/arm64] [--out dist]
//
// It compiles cmd/karmada for each platform and writes an OCI archive for each platform, and one OCI
// layout of all platforms. The image has one layer: the binary, a link to it for each program, CA
// certificates, the users root and nonroot, and the license of each linked module.
//
// The output depends only on the source, the flags and the version of Go. All times are
// SOURCE_DATE_EPOCH, or the time of the commit.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options are the parsed flags.
type options struct {
	version, ldflags, out string
	platforms             []v1.Platform
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.version, "version", "", "version of the image, which is also its tag")
	flags.StringVar(&o.ldflags, "ldflags", "", "flags of the linker")
	flags.StringVar(&o.out, "out", "dist", "directory of the archives")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms, as OS/ARCHITECTURE")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.version == "" {
		return o, fmt.Errorf("--version is required: it is the tag of the image")
	}
	for text := range strings.SplitSeq(*platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS != "linux" || platform.Architecture == "" {
			return o, fmt.Errorf("--platforms %q: must be a list such as linux/amd64,linux/arm64", text)
		}
		o.platforms = append(o.platforms, *platform)
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	content, err := newContent(ctx, o.version)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "karmada-image-")
	if err != nil {
		return fmt.Errorf("creating a directory for the build: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	binaries := map[string]string{}
	for _, platform := range o.platforms {
		fmt.Fprintln(os.Stderr, "compiling karmada for", platform.String())
		binary := filepath.Join(work, "karmada-"+platform.Architecture)
		if err := compile(ctx, platform, o.ldflags, binary); err != nil {
			return err
		}
		binaries[platform.Architecture] = binary
	}
	written, err := content.write(o.platforms, binaries, o.out)
	if err != nil {
		return err
	}
	for _, image := range written {
		fmt.Printf("%s\t%s\t%.1f MB compressed\n", image.digest, image.path, float64(image.bytes)/1e6)
	}
	return nil
}

// compile builds a static binary. GOAMD64 and GOARM64 have their defaults, so that the environment
// does not change the binary.
func compile(ctx context.Context, platform v1.Platform, ldflags, binary string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", ldflags, "-o", binary, "./cmd/karmada")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("compiling karmada for %s: %w", platform.String(), err)
	}
	return nil
}

// newContent returns what the images for all platforms have in common. It reads the repository in the
// working directory.
func newContent(ctx context.Context, version string) (content, error) {
	revision, err := output(ctx, "git", "rev-parse", "HEAD")
	if err != nil {
		return content{}, err
	}
	created, err := sourceTime(ctx)
	if err != nil {
		return content{}, err
	}
	licenses, err := licenseFiles(ctx)
	if err != nil {
		return content{}, err
	}
	return content{version: version, revision: revision, created: created, files: append(commonFiles(), licenses...)}, nil
}

// sourceTime returns the time of all files and images.
func sourceTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = output(ctx, "git", "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, err
		}
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: must be a number of seconds since 1970: %w", text, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
