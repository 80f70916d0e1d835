// Package integration answers "does Karmada as a whole do what it promises?" on
// control planes with all components and three members, all of them real API servers.
// The members run no controllers: what happens in them is what Karmada or a test does.
//
// All tests run in parallel. A test that touches only objects of its own shares an
// environment with others. A test that stops something, changes settings or counts
// requests has an environment for itself as long as it runs.
package integration

import (
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

// sharers is how many tests use each shared environment at a time: they wait more than
// they compute.
const sharers = 8

// scheme has every type that tests read and write.
var scheme = testenv.Scheme()

// pool holds the environments of this package.
var pool *testenv.Pool

// Environments that tests share, by what they may do in them.
const (
	objectsOnly = "objects"
	newClusters = "clusters"
)

// shared returns an environment for tests that change only objects of their own. No
// cluster joins or leaves it.
func shared(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Share(t, objectsOnly)
}

// sharedWithNewClusters returns an environment for tests that join clusters of their
// own and send their objects to clusters by name.
func sharedWithNewClusters(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Share(t, newClusters)
}

// member3Turn is held by the test that joins the API server of member3 under another
// name.
var member3Turn = make(chan struct{}, 1)

// sharedWithNewcomer is sharedWithNewClusters for tests that join member3 once more.
func sharedWithNewcomer(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	testenv.Acquire(t, member3Turn)
	return pool.Share(t, newClusters)
}

// alone returns an environment that no other test uses until this one ends. The test
// leaves its members registered and its components running with their defaults.
func alone(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Lease(t)
}

// withoutEnvironment is for tests that start all servers they need.
func withoutEnvironment(t *testing.T) {
	t.Helper()
	t.Parallel()
	pool.Reserve(t)
}

func TestMain(m *testing.M) {
	if program, is := asProgram(); is {
		os.Exit(command.Main(program))
	}
	logs := flag.String("logs", "", "file for the logs of all servers and components, which are dropped otherwise")
	klog.InitFlags(nil)
	environments := flag.Int("environments", 3, "control planes for tests that run alone in theirs, beside those that tests share")
	part := flag.String("shard", "", "which part of the tests runs, as i/n with i from 1 to n; all of them by default")
	// The pool decides how many tests run at a time. A test that waits for it occupies no
	// turn of another.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if err := selectShard(*part); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// Clients look for another certificate every five minutes, which is longer than
	// some live here.
	transport.CertCallbackRefreshDuration = time.Second
	clock.start()
	os.Exit(run(m, *logs, *environments))
}

// run starts the environment, runs the tests and stops it.
func run(m *testing.M, logs string, environments int) int {
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
	pool = testenv.NewPool(dir, environments, sharers, member1, member2, member3)
	defer pool.Stop()
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
