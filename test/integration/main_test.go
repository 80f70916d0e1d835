// Package integration answers "does Karmada as a whole do what it promises?" on
// control planes with all components and three members, all of them real API servers.
// The members run no controllers: what happens in them is what Karmada or a test does.
//
// All tests run in parallel. A test that touches only objects of its own shares an
// environment with others. A test that stops something, changes settings or counts
// requests has an environment for itself as long as it runs.
package integration

import (
	"flag"
	"fmt"
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

// sharers is how many tests use the shared environment at a time: they wait more than
// they compute.
const sharers = 8

// scheme has every type that tests read and write.
var scheme = testenv.Scheme()

// pool holds the environments of this package.
var pool *testenv.Pool

// shared returns an environment for tests that change only objects of their own. No
// cluster joins or leaves it.
func shared(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Share(t, "objects")
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
	if code, isChild := testenv.RunControlPlane(); isChild {
		os.Exit(code)
	}
	if program, is := programFromEnvironment(); is {
		os.Exit(command.Main(program))
	}
	logs := flag.String("logs", "", "file for the logs of all servers and components, which are dropped otherwise")
	klog.InitFlags(nil)
	environments := flag.Int("environments", 3, "control planes for tests that run alone in theirs, beside the one that tests share")
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
	stopLogs, err := testenv.LogTo(logs)
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
	pool = testenv.NewPool(dir, logs, environments, sharers, member1, member2, member3)
	defer pool.Stop()
	return m.Run()
}
