package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/spf13/pflag"
)

const profilingHeaderTimeout = 10 * time.Second

// profiling serves profiles of the process under /debug/pprof/.
type profiling struct {
	Enabled bool
	Address string
}

func (p *profiling) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&p.Enabled, "enable-pprof", p.Enabled, "Serve profiles under /debug/pprof/ on --profiling-bind-address.")
	flags.StringVar(&p.Address, "profiling-bind-address", p.Address, "Address on which profiles are served, such as 127.0.0.1:6060 or :6060.")
}

// start serves profiles until ctx ends. If the server ends earlier, start calls stop. wait blocks
// until the server has ended, and returns the error if ctx was not the cause.
func (p profiling) start(ctx context.Context, stop func()) (wait func() error, err error) {
	if !p.Enabled {
		return func() error { return nil }, nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", p.Address)
	if err != nil {
		return nil, fmt.Errorf("serving profiles on --profiling-bind-address %q: %w", p.Address, err)
	}
	server, ended := &http.Server{Handler: newProfilingHandler(), ReadHeaderTimeout: profilingHeaderTimeout}, make(chan error, 1)
	release := context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		defer stop()
		defer release()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			ended <- fmt.Errorf("serving profiles: %w", err)
		}
		close(ended)
	}()
	return func() error { return <-ended }, nil
}

func newProfilingHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
