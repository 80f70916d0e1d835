// Package integration tests Karmada as a whole. Each test uses an environment: a control plane with
// all components and three members, all of them real API servers. The members run no controllers:
// what happens in them is what Karmada or a test does.
//
// All tests run in parallel. Tests that change only their own objects share one environment. Tests
// whose own clusters join and leave share another environment. A test that stops something, changes
// settings or counts requests has an environment for itself as long as it runs.
package integration

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
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

// Names of the shared environments.
const (
	objectsEnvironment  = "objects"
	clustersEnvironment = "clusters"
)

// sharers is how many tests use each shared environment at a time. Several tests can share it,
// because tests wait more than they compute. The number is smaller for tests whose clusters join,
// because such a test also starts an API server.
var sharers = map[string]int{objectsEnvironment: 8, clustersEnvironment: 5}

// scheme has every type that tests read and write.
var scheme = testenv.Scheme()

// pool holds the environments of this package.
var pool *testenv.Pool

// shared returns an environment for tests that change only objects of their own. No
// cluster joins or leaves it.
func shared(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Share(t, objectsEnvironment)
}

// joining returns an environment for tests whose own clusters join and leave. Other tests do
// the same at that time, so the test must place objects on named clusters only. It must not
// register a member of the environment: see newcomerTurn.
func joining(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Share(t, clustersEnvironment)
}

// newcomerTurn holds a token while a test uses member3 under the name of another cluster.
var newcomerTurn = make(chan struct{}, 1)

// joiningMember3 returns the same environment as joining. It is for tests that register member3
// under another name, and only one of these tests runs at a time.
func joiningMember3(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	testenv.Acquire(t, newcomerTurn)
	return pool.Share(t, clustersEnvironment)
}

// alone returns an environment that no other test uses until this one ends. The test
// leaves its members registered and its components running with their defaults.
func alone(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.Lease(t)
}

// aloneForLong does the same as alone for a test that takes much longer than most others.
func aloneForLong(t *testing.T) *testenv.Env {
	t.Helper()
	t.Parallel()
	return pool.LeaseForLong(t)
}

// withoutEnvironment is for tests that start all their servers themselves. Such a test counts as a
// test that has an environment for itself.
func withoutEnvironment(t *testing.T) {
	t.Helper()
	t.Parallel()
	pool.Reserve(t)
}

// gcPercent and maxHeap reduce the number of garbage collections. With the default of 100 percent,
// they took a quarter of the processor time, because API servers allocate much memory and keep
// little of it. maxHeap is a soft limit in bytes.
const (
	gcPercent = 300
	maxHeap   = 6 << 30
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(maxHeap)
	if code, isChild := testenv.RunControlPlane(); isChild {
		os.Exit(code)
	}
	if program, is := programFromEnvironment(); is {
		os.Exit(command.Main(program))
	}
	logs := flag.String("logs", "", "file for the logs of all servers and components, which are dropped otherwise")
	klog.InitFlags(nil)
	environments := flag.Int("environments", 2, "control planes for tests that run alone in theirs, beside the ones that tests share")
	part := flag.String("shard", "", "which part of the tests runs, as i/n with i from 1 to n; all of them by default")
	// The pool decides how many tests run at a time, so remove the limit of the testing package.
	// With that limit, tests that wait for the pool would keep other tests from starting.
	if err := flag.Set("test.parallel", "1000"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if err := selectShard(*part); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	// By default, clients look for a renewed certificate every five minutes, which is longer than
	// some certificates of these tests are valid.
	transport.CertCallbackRefreshDuration = time.Second
	clock.start()
	os.Exit(run(m, *logs, *environments))
}

// run creates the pool of environments, runs the tests and stops the pool.
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
	pool = testenv.NewPool(testenv.PoolOptions{
		Dir: dir, LogFile: logs, Members: []string{member1, member2, member3}, Single: environments, Sharers: sharers,
	})
	defer pool.Stop()
	return m.Run()
}
