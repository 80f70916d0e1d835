// Interpreter-webhook is an example of a server that tells Karmada how to interpret the objects of a
// kind, here of the kind Workload. README.md shows how to run it.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"karmada.io/karmada/examples/interpreter-webhook/workload"
	"karmada.io/karmada/pkg/webhook/interpreter"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("address", ":8443", "Address at which the webhook listens")
	certFile := flag.String("tls-cert-file", "tls.crt", "File with the certificate of the server")
	keyFile := flag.String("tls-private-key-file", "tls.key", "File with the key of the certificate")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", *address, err)
	}
	return serve(ctx, listener, *certFile, *keyFile)
}

// serve serves until ctx ends. Then it waits for the requests that are running.
func serve(ctx context.Context, listener net.Listener, certFile, keyFile string) error {
	mux := http.NewServeMux()
	mux.Handle("/interpret", interpreter.NewWebhook(workload.NewHandler()))
	server := &http.Server{Handler: mux, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	defer func() { _ = server.Close() }() // the error of serving is more useful
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, certFile, keyFile) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving at %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(shutdown); err != nil {
		return fmt.Errorf("ending the running requests: %w", err)
	}
	return nil
}
