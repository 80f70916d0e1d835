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

// listenStatus opens the listeners for health and metrics, and returns the function that serves
// them until ctx ends. An agent that waits for an API server is reported as healthy, because a
// restart would not help. The listeners stay open when the controllers restart.
func listenStatus(ctx context.Context, addresses flags.Serving) (func(context.Context) error, error) {
	metricsHandler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	muxes := map[string]*http.ServeMux{}
	muxFor := func(address string) *http.ServeMux {
		if muxes[address] == nil {
			muxes[address] = http.NewServeMux()
		}
		return muxes[address]
	}
	if isEnabled(addresses.Health) {
		muxFor(addresses.Health).HandleFunc("/healthz", writeOK)
		muxFor(addresses.Health).HandleFunc("/healthz/ping", writeOK)
	}
	if isEnabled(addresses.Metrics) {
		muxFor(addresses.Metrics).Handle("/metrics", metricsHandler)
	}
	listeners := map[net.Listener]*http.Server{}
	for address, handler := range muxes {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			for opened := range listeners {
				_ = opened.Close()
			}
			return nil, fmt.Errorf("listening on %s, see --health-probe-bind-address and --metrics-bind-address: %w", address, err)
		}
		listeners[listener] = &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	}
	return func(ctx context.Context) error { return serveStatus(ctx, listeners) }, nil
}

func serveStatus(ctx context.Context, listeners map[net.Listener]*http.Server) error {
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

func isEnabled(address string) bool { return address != "" && address != "0" }

func writeOK(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }
