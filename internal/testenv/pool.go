package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/klog/v2"
)

// Pool leases environments to the tests of a package. It starts an environment when a test
// needs one, and later tests use it again.
type Pool struct {
	dir, logFile string
	members      []string

	// leases holds one token for each test that has an environment for itself.
	leases  chan struct{}
	sharers int

	mu      sync.Mutex
	shared  map[string]*sharedEnv
	idle    []*Env
	started []*Env
}

// sharedEnv is an environment that several tests use at the same time. Each of them holds one
// token.
type sharedEnv struct {
	tokens chan struct{}
	start  func() (*Env, error)
}

// NewPool returns a pool whose environments keep their files below dir, append the logs of
// control planes to logFile, and have the named members. At most leases tests have an environment for themselves at a time, and at most
// sharers tests use each shared one.
func NewPool(dir, logFile string, leases, sharers int, members ...string) *Pool {
	return &Pool{dir: dir, logFile: logFile, members: members, leases: make(chan struct{}, leases), sharers: sharers, shared: map[string]*sharedEnv{}}
}

// Share returns the shared environment with this name.
func (p *Pool) Share(t testing.TB, name string) *Env {
	t.Helper()
	shared := p.sharedEnv(name)
	Acquire(t, shared.tokens)
	env, err := shared.start()
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func (p *Pool) sharedEnv(name string) *sharedEnv {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shared[name] == nil {
		p.shared[name] = &sharedEnv{tokens: make(chan struct{}, p.sharers), start: sync.OnceValues(p.start)}
	}
	return p.shared[name]
}

// Reserve counts the test as one that has an environment for itself. It is for tests that start
// servers of their own.
func (p *Pool) Reserve(t testing.TB) {
	t.Helper()
	Acquire(t, p.leases)
}

// Lease returns an environment that the test has for itself until its cleanup is done.
// The environment of a test that failed is stopped, because it may be in any state.
func (p *Pool) Lease(t testing.TB) *Env {
	t.Helper()
	Acquire(t, p.leases)
	env := p.takeIdle()
	if env == nil {
		var err error
		if env, err = p.start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			env.Stop()
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.idle = append(p.idle, env)
	})
	return env
}

// Acquire waits until the channel takes a token, and removes the token when the test
// ends. The timeout of the test program bounds the wait.
func Acquire(t testing.TB, tokens chan struct{}) {
	t.Helper()
	select {
	case tokens <- struct{}{}:
		t.Cleanup(func() { <-tokens })
	case <-t.Context().Done():
		t.Fatal("waiting for an environment:", context.Cause(t.Context()))
	}
}

func (p *Pool) takeIdle() *Env {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	env := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return env
}

func (p *Pool) start() (*Env, error) {
	dir, err := os.MkdirTemp(p.dir, "environment-")
	if err != nil {
		return nil, fmt.Errorf("making the directory of an environment: %w", err)
	}
	// The environment is used after the end of the test that starts it.
	env, err := start(context.Background(), dir, p.logFile, p.members...)
	if err != nil {
		return nil, fmt.Errorf("starting an environment in %s: %w", filepath.Base(dir), err)
	}
	klog.Background().Info("Started an environment", "dir", dir)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, env)
	return env, nil
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
