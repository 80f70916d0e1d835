package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/testenv/rawlogs"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"karmadactl":      func() { os.Exit(runWithoutRawLogs(Karmadactl)) },
		"kubectl-karmada": func() { os.Exit(runWithoutRawLogs(Plugin)) },
	})
}

// newNoise returns a command in which libraries log.
func newNoise(*command.Program) *cobra.Command {
	return &cobra.Command{Use: "noise", Hidden: true, Run: func(*cobra.Command, []string) {
		klog.Background().Error(nil, "klog")
		runtimelog.Log.Error(nil, "controller-runtime")
		stdlog.Print("standard library")
	}}
}

// exitRawLogs is the exit code of a command whose standard error contains log lines of libraries.
const exitRawLogs = 9

// childVariable is set in the environment of the process that runs the program.
const childVariable = "KARMADACTL_TEST_CHILD"

// runWithoutRawLogs runs the program in a child process. Without flags for the log, the exit code is
// exitRawLogs if a library logs. So every script checks this for its commands. The process is another one,
// because commands of kubectl end their process.
func runWithoutRawLogs(name string) int {
	if os.Getenv(childVariable) != "" {
		commands = append(commands, commandRow{"other", newNoise})
		return Run(name)
	}
	var text bytes.Buffer
	child := exec.Command(os.Args[0])
	child.Args, child.Env = os.Args, append(os.Environ(), childVariable+"=1")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, io.MultiWriter(os.Stderr, &text)
	err := child.Run()
	isLogging := slices.ContainsFunc(os.Args, func(arg string) bool { return strings.HasPrefix(arg, "--v=") })
	switch {
	case !isLogging && len(rawlogs.Find(text.String())) > 0:
		return exitRawLogs
	case err != nil:
		return exitCode(err)
	}
	return command.ExitSuccess
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// The scripts run a hundred programs, and a program with the race detector would sleep
			// for one second before its exit.
			env.Setenv("GORACE", "atexit_sleep_ms=10 "+os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": checkExitCode,
			"serve": serveAPI,
		},
	})
}

// checkExitCode runs a program and checks its exit code. Example: exits 2 karmadactl join.
func checkExitCode(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits code program args...")
	}
	code := command.ExitSuccess
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = exitCode(err)
	}
	if want := args[0]; want != string(rune('0'+code)) {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

func exitCode(err error) int {
	coded, ok := err.(interface{ ExitCode() int })
	if !ok {
		return -1
	}
	return coded.ExitCode()
}

func TestErrorMessageOfInterrupt(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	tests := map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"an interrupt": {
			ctx: interrupted, err: fmt.Errorf("querying members: %w", context.Canceled), want: "querying members: interrupted",
		},
		"an interrupt joined with another error": {
			ctx: interrupted, err: errors.Join(context.Canceled, errors.New("Secret a remains")), want: "interrupted\nSecret a remains",
		},
		"a context that was canceled elsewhere": {ctx: t.Context(), err: fmt.Errorf("etcd: %w", context.Canceled), want: "etcd: context canceled"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := errorMessage(test.ctx, test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCommandsHaveHelpAndGroup(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := New(&command.Program{Name: Plugin, IOStreams: streams})
	if len(root.Commands()) != len(commands) {
		t.Errorf("%d commands below the root, %d rows", len(root.Commands()), len(commands))
	}
	known := map[string]bool{}
	for _, group := range groups {
		known[group.ID] = true
	}
	for _, cmd := range root.Commands() {
		if cmd.Example == "" || cmd.Short == "" || cmd.Long == "" {
			t.Errorf("%s: example, short or long help is missing", cmd.Name())
		}
		if !known[cmd.GroupID] {
			t.Errorf("%s: no group %q", cmd.Name(), cmd.GroupID)
		}
		if cmd.Args == nil {
			t.Errorf("%s: takes any arguments", cmd.Name())
		}
	}
}

// Scripts of users depend on the name, shorthand and default of these flags.
func TestFlagsOfOtherReleases(t *testing.T) {
	type flags map[string]string // name/shorthand to default
	tests := map[string]flags{
		"join": {
			"cluster-context": "", "cluster-kubeconfig": "", "cluster-namespace": "karmada-cluster", "cluster-provider": "",
			"cluster-region": "", "cluster-zones": "[]", "dry-run": "false", "karmada-as": "", "karmada-as-group": "[]",
			"karmada-as-uid": "", "karmada-context": "", "kubeconfig": "", "member-role": "",
		},
		"unjoin": {
			"cluster-context": "", "cluster-kubeconfig": "", "cluster-namespace": "karmada-cluster", "dry-run": "false",
			"force": "false", "karmada-context": "", "kubeconfig": "", "wait": "1m0s",
		},
		"options": {
			"add-dir-header": "false", "alsologtostderr": "false", "alsologtostderrthreshold": "0", "kubeconfig": "",
			"legacy-stderr-threshold-behavior": "true", "log-backtrace-at": ":0", "log-dir": "", "log-file": "",
			"log-file-max-size": "1800", "logtostderr": "true", "one-output": "false", "skip-headers": "false",
			"skip-log-headers": "false", "stderrthreshold": "2", "v/v": "0", "vmodule": "",
		},
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := New(&command.Program{Name: Karmadactl, IOStreams: streams})
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			cmd := findCommand(t, root, name)
			for flag, value := range want {
				checkFlag(t, cmd, flag, value)
			}
		})
	}
}

func findCommand(t *testing.T, root *cobra.Command, path ...string) *cobra.Command {
	t.Helper()
	cmd, _, err := root.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

func checkFlag(t *testing.T, cmd *cobra.Command, name, value string) {
	t.Helper()
	name, short, _ := strings.Cut(name, "/")
	flag := cmd.Flag(name)
	if flag == nil {
		t.Errorf("no flag --%s", name)
		return
	}
	if flag.Shorthand != short {
		t.Errorf("--%s is also -%s, want -%s", name, flag.Shorthand, short)
	}
	if flag.DefValue != value {
		t.Errorf("--%s has default %q, want %q", name, flag.DefValue, value)
	}
}
