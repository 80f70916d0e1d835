package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	logsapi "k8s.io/component-base/logs/api/v1"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
)

// TestMain allows several programs in one process to configure the same log again.
func TestMain(m *testing.M) {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	os.Exit(m.Run())
}

// options are the options of a program. A test defines their methods.
type options struct {
	name     string
	validate func() error
	run      func(context.Context) error
}

func (o *options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.name, "cluster-name", "", "Name of the cluster.")
}

func (o *options) Validate() error {
	if o.validate == nil {
		return nil
	}
	return o.validate()
}

func (o *options) Run(ctx context.Context) error {
	if o.run == nil {
		return nil
	}
	return o.run(ctx)
}

func program(o *options) command.Program {
	return command.Program{Name: "karmada-x", Help: "serves a test", New: func(*gates.Set) command.Options { return o }}
}

func TestExit(t *testing.T) {
	tests := map[string]struct {
		args    []string
		options options
		code    int
		stderr  string
	}{
		"a clean end is 0":                       {},
		"an error of the program is 1":           {options: options{run: func(context.Context) error { return errors.New("disk full") }}, code: 1, stderr: "error: disk full\n"},
		"an unknown flag is wrong usage":         {args: []string{"--no-such"}, code: 2, stderr: "error: unknown flag: --no-such\nSee 'karmada-x --help' for usage.\n"},
		"an argument is wrong usage":             {args: []string{"now"}, code: 2, stderr: "error: unexpected argument \"now\": the program accepts only flags\nSee 'karmada-x --help' for usage.\n"},
		"an unknown feature gate is wrong usage": {args: []string{"--feature-gates=Nope=true"}, code: 2, stderr: "unrecognized feature gate: Nope"},
		"every mistake is printed on its own line": {
			options: options{validate: func() error { return errors.Join(errors.New("--a must be 1"), errors.New("--b must be 2")) }},
			code:    2, stderr: "error: --a must be 1\nerror: --b must be 2\nSee 'karmada-x --help' for usage.\n",
		},
		"an unknown log format is wrong usage":         {args: []string{"--logging-format=yaml"}, code: 2, stderr: "yaml"},
		"an alpha option of the log requires its gate": {args: []string{"--log-text-split-stream"}, code: 2, stderr: "LoggingAlphaOptions"},
		"two streams and files exclude each other": {
			args: []string{"--feature-gates=LoggingAlphaOptions=true", "--log-text-split-stream", "--log-file=x"},
			code: 2, stderr: "--log-text-split-stream and --log-file exclude each other",
		},
		"an invalid profiling address is reported": {
			args: []string{"--enable-pprof", "--profiling-bind-address=nowhere"}, code: 1, stderr: `serving profiles on --profiling-bind-address "nowhere"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, stderr := command.New(program(&test.options)), &bytes.Buffer{}
			cmd.SetArgs(append([]string{}, test.args...))
			if code := command.Exit(stderr, "karmada-x", cmd.ExecuteContext(t.Context())); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("printed %q, want it to contain %q", stderr, test.stderr)
			}
		})
	}
}

func TestSubcommands(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string
	}{
		"version prints one line":              {[]string{"version"}, `karmada-x version: version.Info{GitVersion:"`},
		"completion prints a script":           {[]string{"completion", "bash"}, "__start_karmada-x"},
		"help describes the program":           {[]string{"--help"}, "karmada-x serves a test."},
		"help shows the flags of the program":  {[]string{"help"}, "--cluster-name"},
		"help shows the flags of all programs": {[]string{"help"}, "--enable-pprof"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, out := command.New(program(&options{})), &bytes.Buffer{}
			cmd.SetOut(out)
			cmd.SetArgs(test.args)
			if err := cmd.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("printed %q, want it to contain %q", out, test.want)
			}
		})
	}
}

func TestProfilingServer(t *testing.T) {
	address := freeAddress(t)
	o := &options{run: func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/cmdline", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", response.Status)
		}
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}}
	cmd := command.New(program(o))
	cmd.SetArgs([]string{"--enable-pprof", "--profiling-bind-address=" + address})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Error(err)
	}
	if connection, err := net.Dial("tcp", address); err == nil {
		connection.Close()
		t.Error("profiles are still served although the program has ended")
	}
}

func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		if err := command.RegisterBuildInfo(registry); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "karmada_build_info" {
		t.Fatalf("gathered %v, %v; want karmada_build_info once", families, err)
	}
	metric := families[0].GetMetric()[0]
	var labels []string
	for _, label := range metric.GetLabel() {
		labels = append(labels, label.GetName())
	}
	want := []string{"build_date", "compiler", "git_commit", "git_short_commit", "git_tree_state", "git_version", "go_version", "platform"}
	if diff := cmp.Diff(want, labels); diff != "" || metric.GetGauge().GetValue() != 1 {
		t.Errorf("value %v, want 1; labels (-want +got):\n%s", metric.GetGauge().GetValue(), diff)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
