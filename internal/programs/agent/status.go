package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/programs/flags"
)

const headerTimeout = 10 * time.Second

// serve opens where the agent tells how it is, and returns what answers there until
// ctx ends. An agent that waits for a side is healthy: a restart would not help.
// That outlives the controllers, which may begin anew.
func serve(ctx context.Context, at flags.Serving) (func(context.Context) error, error) {
	measured := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	sites := map[string]*http.ServeMux{}
	site := func(address string) *http.ServeMux {
		if sites[address] == nil {
			sites[address] = http.NewServeMux()
		}
		return sites[address]
	}
	if isOn(at.Health) {
		site(at.Health).HandleFunc("/healthz", ok)
		site(at.Health).HandleFunc("/healthz/ping", ok)
	}
	if isOn(at.Metrics) {
		site(at.Metrics).Handle("/metrics", measured)
	}
	listeners := map[net.Listener]*http.Server{}
	for address, handler := range sites {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			for opened := range listeners {
				_ = opened.Close()
			}
			return nil, fmt.Errorf("listening on %s, see --health-probe-bind-address and --metrics-bind-address: %w", address, err)
		}
		listeners[listener] = &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	}
	return func(ctx context.Context) error { return answer(ctx, listeners) }, nil
}

func answer(ctx context.Context, listeners map[net.Listener]*http.Server) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { <-ctx.Done(); return nil })
	for listener, server := range listeners {
		group.Go(func() error {
			defer context.AfterFunc(ctx, func() { _ = server.Close() })()
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func isOn(address string) bool { return address != "" && address != "0" }

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }
