// Package standalone runs a Kubernetes cluster inside one process, without containers: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and simulated nodes are compiled in and started with their option
// structs. It manages the key that encrypts Secrets and Works in etcd, and simulates the volumes, addresses
// and metrics of a cluster.
//
// Only this package and its subpackages link k8s.io/kubernetes, the etcd server and KWOK. By default, every
// server listens on loopback; etcd listens only on a unix socket that requires a client certificate. Every
// server ends with the context with which it was started.
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

// Loopback is the default bind address of every server.
const Loopback = "127.0.0.1"

// server is a server that runs in the background until it is stopped.
type server struct {
	name string
	stop context.CancelFunc
	done chan struct{}
	err  error
}

var errUnexpectedEnd = errors.New("the server ended unexpectedly")

// startServer runs a server in the background. The end of ctx does not stop the server, because a
// serverGroup must stop its servers in order. A server that ends by itself has failed.
func startServer(ctx context.Context, name string, run func(context.Context) error) *server {
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

// stopTimeout is how long the servers of one stage may take to end. After this time the next stage
// is stopped anyway.
const stopTimeout = 3 * time.Second

// serverGroup contains servers in stages. Servers depend on those of earlier stages, so later stages are
// stopped first.
type serverGroup struct {
	mu     sync.Mutex
	stages [][]*server
}

func (g *serverGroup) add(stage int, s *server) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.stages) <= stage {
		g.stages = append(g.stages, nil)
	}
	g.stages[stage] = append(g.stages[stage], s)
}

// stop stops the stages from the last to the first.
func (g *serverGroup) stop() {
	g.mu.Lock()
	stages := slices.Clone(g.stages)
	g.mu.Unlock()
	for _, stage := range slices.Backward(stages) {
		for _, s := range stage {
			s.stop()
		}
		deadline := time.After(stopTimeout)
		for _, s := range stage {
			select {
			case <-s.done:
			case <-deadline:
			}
		}
	}
}

// failure returns the error of a server that ended by itself.
func (g *serverGroup) failure() error {
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

// parseFlags applies command line flags to the options of a Kubernetes component. So this package
// configures components with their documented flags.
func parseFlags(component string, sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet(component, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("parsing the flags of %s: %w", component, err)
	}
	return nil
}

// Listen opens a TCP listener on host. Port 0 selects a free port. The error for a port in
// use names the port.
func Listen(host string, port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("opening port %d on %s: %w: stop the process that uses it (`ss -ltnp` lists them), or start over with `karmada down --purge`, which removes the data", port, host, err)
		}
		return nil, fmt.Errorf("opening port %d on %s: %w", port, host, err)
	}
	return listener, nil
}

// ListenerPort returns the port of a TCP listener.
func ListenerPort(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
