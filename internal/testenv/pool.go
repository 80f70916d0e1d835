package testenv

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
)

// Pool provides environments for the tests of a package. It starts an environment when a test
// needs one, and later tests use the same environment. When no test shares an environment anymore,
// the pool gives this environment to tests that need an environment for themselves.
type Pool struct {
	options PoolOptions
	shared  map[string]*sharedEnv

	mu sync.Mutex
	// free contains the environments that no test uses. An element is nil if its environment is not
	// started.
	free []*Env
	// waitingLong and waiting are the tests that wait for a free environment. Long tests get an
	// environment first, so that no long test is the last test to run.
	waitingLong, waiting []chan *Env
	started              []*Env
}

// PoolOptions are the options of a Pool.
type PoolOptions struct {
	// Dir is the directory for the files of all environments.
	Dir string
	// LogFile is the file to which control planes append their logs. Empty means that the logs are
	// dropped.
	LogFile string
	// Members are the names of each environment's members.
	Members []string
	// Single is the number of environments for tests that need an environment for themselves, in
	// addition to the shared environments.
	Single int
	// Sharers contains the names of the shared environments. The value is the maximum number of
	// tests that use the environment at the same time.
	Sharers map[string]int
}

// sharedEnv is an environment that several tests use at the same time. Each of these tests holds
// one token.
type sharedEnv struct {
	tokens chan struct{}

	mu sync.Mutex
	// users is the number of tests that use the environment or wait for it.
	users int
	env   *Env
	// isReserved is true until the environment is used for the first time. hasFailed is true if a
	// test has failed after that.
	isReserved, hasFailed bool
}

// NewPool returns a pool without running environments.
func NewPool(options PoolOptions) *Pool {
	p := &Pool{options: options, free: make([]*Env, options.Single), shared: map[string]*sharedEnv{}}
	for name, sharers := range options.Sharers {
		p.shared[name] = &sharedEnv{tokens: make(chan struct{}, sharers), isReserved: true}
	}
	return p
}

// Share returns the shared environment with this name.
func (p *Pool) Share(t testing.TB, name string) *Env {
	t.Helper()
	shared := p.shared[name]
	if shared == nil {
		t.Fatalf("there is no shared environment %q, but %v", name, slices.Sorted(maps.Keys(p.shared)))
	}
	shared.addUser()
	t.Cleanup(func() { p.removeUser(t, shared) })
	began := time.Now()
	Acquire(t, shared.tokens)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.env == nil {
		shared.env = p.startShared(t, shared)
	}
	logWait(t, began)
	return shared.env
}

func (s *sharedEnv) addUser() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

// startShared returns the environment, and starts it for its first user. The caller must hold
// shared.mu.
func (p *Pool) startShared(t testing.TB, shared *sharedEnv) *Env {
	t.Helper()
	if !shared.isReserved {
		return p.take(t, false)
	}
	env := p.start(t)
	shared.isReserved = false
	return env
}

// removeUser ends the use of a shared environment by a test. When the last test ends its use,
// other tests may use the environment.
func (p *Pool) removeUser(t testing.TB, shared *sharedEnv) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.users--
	shared.hasFailed = shared.hasFailed || t.Failed()
	if shared.users == 0 && shared.env != nil {
		p.release(shared.env, shared.hasFailed)
		shared.env, shared.hasFailed = nil, false
	}
}

// Reserve counts a test that starts its own servers as a test that has an environment for itself,
// so that the number of servers on the machine stays limited.
func (p *Pool) Reserve(t testing.TB) {
	t.Helper()
	began := time.Now()
	env := p.await(true)
	t.Cleanup(func() { p.release(env, false) })
	logWait(t, began)
}

// Lease returns an environment that the test has for itself until its cleanup is done.
func (p *Pool) Lease(t testing.TB) *Env {
	t.Helper()
	return p.lease(t, false)
}

// LeaseForLong does the same as Lease for a test that takes much longer than most other tests.
func (p *Pool) LeaseForLong(t testing.TB) *Env {
	t.Helper()
	return p.lease(t, true)
}

func (p *Pool) lease(t testing.TB, isLong bool) *Env {
	t.Helper()
	began := time.Now()
	env := p.take(t, isLong)
	t.Cleanup(func() { p.release(env, t.Failed()) })
	logWait(t, began)
	return env
}

// take waits for a free environment. If the environment does not run, take starts it.
func (p *Pool) take(t testing.TB, isLong bool) *Env {
	t.Helper()
	env := p.await(isLong)
	if env != nil {
		return env
	}
	isStarted := false
	defer func() {
		if !isStarted {
			p.release(nil, false)
		}
	}()
	env = p.start(t)
	isStarted = true
	return env
}

// await waits until an environment is free. The wait ends at the latest with the timeout of the
// test program.
func (p *Pool) await(isLong bool) *Env {
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		env := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		return env
	}
	turn := make(chan *Env, 1)
	if isLong {
		p.waitingLong = append(p.waitingLong, turn)
	} else {
		p.waiting = append(p.waiting, turn)
	}
	p.mu.Unlock()
	return <-turn
}

// release makes an environment available for other tests. If a test failed, release stops the
// environment, because it may be in any state.
func (p *Pool) release(env *Env, hasFailed bool) {
	if hasFailed {
		env.Stop()
		env = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, queue := range []*[]chan *Env{&p.waitingLong, &p.waiting} {
		if len(*queue) > 0 {
			(*queue)[0] <- env
			*queue = (*queue)[1:]
			return
		}
	}
	p.free = append(p.free, env)
}

// Acquire sends a token to the channel, waits until the channel has room for it, and removes the
// token when the test ends. The wait ends at the latest with the timeout of the test program.
func Acquire(t testing.TB, tokens chan struct{}) {
	t.Helper()
	select {
	case tokens <- struct{}{}:
		t.Cleanup(func() { <-tokens })
	case <-t.Context().Done():
		t.Fatal("waiting for other tests:", context.Cause(t.Context()))
	}
}

// logWait logs how long the test waited for its environment, including the environment's start. The duration
// that the testing package reports for the test includes this wait.
func logWait(t testing.TB, began time.Time) {
	t.Helper()
	t.Logf("waited %s for an environment", time.Since(began).Round(time.Second))
}

func (p *Pool) start(t testing.TB) *Env {
	t.Helper()
	dir, err := os.MkdirTemp(p.options.Dir, "environment-") //nolint:usetesting // the environment outlives the test
	if err != nil {
		t.Fatalf("making the directory of an environment: %v", err)
	}
	// The environment outlives the test that starts it, so it does not use this test's context.
	env, err := start(context.Background(), dir, p.options.LogFile, p.options.Members...)
	if err != nil {
		t.Fatalf("starting an environment in %s: %v", filepath.Base(dir), err)
	}
	klog.Background().Info("Started an environment", "dir", dir)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, env)
	return env
}

// Stop stops all environments of the pool.
func (p *Pool) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var stops sync.WaitGroup
	for _, env := range p.started {
		stops.Go(env.Stop)
	}
	stops.Wait()
}
