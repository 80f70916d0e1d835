package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is the time after which a server that was asked to end is killed.
const stopTimeout = 5 * time.Second

// servers are the processes of the node.
type servers struct {
	// logs is the directory of their logs.
	logs string

	mu      sync.Mutex
	running []*server
	stopped bool
	err     error
}

type server struct {
	process *os.Process
	done    chan struct{}
}

// start runs a program under the name args[0], and writes its output to a log of this name.
func (s *servers) start(program string, args ...string) error {
	path := filepath.Join(s.logs, args[0]+".log")
	log, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating the log of %s: %w", args[0], err)
	}
	defer func() { _ = log.Close() }()
	// A process group of its own, because Ctrl-C must reach only this program, which stops the servers.
	cmd := &exec.Cmd{Path: program, Args: args, Stdout: log, Stderr: log, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", args[0], err)
	}
	started := &server{process: cmd.Process, done: make(chan struct{})}
	s.mu.Lock()
	s.running = append(s.running, started)
	s.mu.Unlock()
	go func() {
		err := cmd.Wait()
		close(started.done)
		s.recordEnd(args[0], path, err)
	}()
	return nil
}

func (s *servers) recordEnd(name, log string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped && s.err == nil {
		s.err = fmt.Errorf("%s ended, see %s: %w", name, log, errors.Join(errors.New("unexpected end"), err))
	}
}

// failure returns the error of the first server that ended by itself.
func (s *servers) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stop ends the servers in the reverse order of their start.
func (s *servers) stop() {
	s.mu.Lock()
	s.stopped = true
	running := s.running
	s.mu.Unlock()
	for i := len(running) - 1; i >= 0; i-- {
		_ = running[i].process.Signal(syscall.SIGTERM)
		select {
		case <-running[i].done:
		case <-time.After(stopTimeout):
			_ = running[i].process.Kill()
		}
	}
}

const pollInterval = 250 * time.Millisecond

// await repeats a check until it returns no error. The error after the timeout contains the last error of
// the check. The end of a server ends the wait.
func (s *servers) await(ctx context.Context, what string, timeout time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if failed := s.failure(); failed != nil {
			return fmt.Errorf("waiting until %s: %w", what, failed)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w: %w", what, ctx.Err(), err)
		case <-ticker.C:
		}
	}
}
