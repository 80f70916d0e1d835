// Package standalone answers "how does a whole Kubernetes cluster run inside
// one process, without containers?": etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and simulated nodes, compiled in and
// started through their option structs.
//
// It is the only package that links k8s.io/kubernetes, the etcd server and
// KWOK. Everything listens on loopback or on a unix socket in a directory that
// only its owner can read. Every server ends with the context it was started
// with.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/spf13/pflag"
)

// Loopback is the address that every server binds to unless told otherwise.
const Loopback = "127.0.0.1"

// server is a part that runs until it is stopped.
type server struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

var errUnexpectedEnd = errors.New("it ended while it was needed")

// start runs a server in the background. It does not end with ctx but by stop,
// so that a group can end its servers in order. Ending before that is a failure.
func start(ctx context.Context, name string, run func(context.Context) error) *server {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &server{name: name, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		err := run(ctx)
		if ctx.Err() == nil {
			s.err = fmt.Errorf("%s stopped: %w", name, errors.Join(errUnexpectedEnd, err))
		}
	}()
	return s
}

// stopGrace is how long a stage of servers may take to end before the next one
// is stopped all the same.
const stopGrace = 3 * time.Second

// group is a set of servers in stages: those of a later stage need the earlier
// ones and are stopped before them.
type group struct {
	mu     sync.Mutex
	stages [][]*server
}

func (g *group) add(stage int, s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.stages) <= stage {
		g.stages = append(g.stages, nil)
	}
	g.stages[stage] = append(g.stages[stage], s)
}

// stop ends the stages from the last to the first.
func (g *group) stop() {
	g.mu.Lock()
	stages := slices.Clone(g.stages)
	g.mu.Unlock()
	for _, stage := range slices.Backward(stages) {
		for _, s := range stage {
			s.stop()
		}
		deadline := time.After(stopGrace)
		for _, s := range stage {
			select {
			case <-s.done:
			case <-deadline:
			}
		}
	}
}

// failed returns the error of a server that ended by itself.
func (g *group) failed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, stage := range g.stages {
		for _, s := range stage {
			select {
			case <-s.done:
				if s.err != nil {
					return s.err
				}
			default:
			}
		}
	}
	return nil
}

// parse applies command line flags to a Kubernetes component's options, so that
// what we set reads as everybody knows it.
func parse(component string, sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("setting options of %s: %w", component, err)
	}
	return nil
}

// Listen opens a TCP listener on host. Port 0 picks a free one; a port that is
// taken gives an error that names it.
func Listen(host string, port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("opening port %d on %s: %w: end the process that has it (`ss -ltnp` shows which), or start over with `karmada down --purge`, which removes the data", port, host, err)
		}
		return nil, fmt.Errorf("opening port %d on %s: %w", port, host, err)
	}
	return listener, nil
}

// Port is the port that a listener listens on.
func Port(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
