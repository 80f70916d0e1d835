// Package integration answers "does Karmada as a whole do what it promises?":
// one control plane with all components and three members, all real API
// servers, shared by the tests of this package. The members run no controllers:
// what happens in them is what Karmada or a test does.
//
// Tests that stop something run one after the other; the others run in parallel,
// after them.
package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/testenv"
)

// Names of the members.
const (
	member1 = "member1"
	member2 = "member2"
	member3 = "member3"
)

// env is what all tests of this package run against, directory what it keeps.
var (
	env       *testenv.Env
	directory string
)

func TestMain(m *testing.M) {
	if program, is := asProgram(); is {
		os.Exit(command.Main(program))
	}
	logs := flag.String("logs", "", "file for the logs of all servers and components, which are dropped otherwise")
	klog.InitFlags(nil)
	// Tests wait more than they work; a flag given still counts.
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	// Clients look for another certificate every five minutes, which is longer than
	// some live here.
	transport.CertCallbackRefreshDuration = time.Second
	clock.start()
	os.Exit(run(m, *logs))
}

// run starts the environment, runs the tests and stops it.
func run(m *testing.M, logs string) int {
	stopLogs, err := direct(logs)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stopLogs()
	dir, err := os.MkdirTemp("", "karmada-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	directory = dir
	began := time.Now()
	if env, err = testenv.Start(context.Background(), dir, member1, member2, member3); err != nil {
		fmt.Fprintln(os.Stderr, "starting the environment:", err)
		return 1
	}
	defer env.Stop()
	fmt.Fprintln(os.Stderr, "environment started in", time.Since(began).Round(time.Millisecond))
	return m.Run()
}

// direct sends all logs to a file, or nowhere.
func direct(logs string) (stop func(), err error) {
	klog.LogToStderr(false)
	// Once each, whatever its severity.
	if err := errors.Join(flag.Set("stderrthreshold", "FATAL"), flag.Set("one_output", "true")); err != nil {
		return nil, err
	}
	if logs == "" {
		klog.SetOutput(io.Discard)
		return func() {}, nil
	}
	file, err := os.Create(logs)
	if err != nil {
		return nil, err
	}
	klog.SetOutput(file)
	return func() {
		klog.Flush()
		_ = file.Close()
	}, nil
}
