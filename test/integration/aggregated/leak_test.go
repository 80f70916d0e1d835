package aggregated_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karmada.io/karmada/internal/servers/aggregated"
	"karmada.io/karmada/internal/testenv/testetcd"
)

func TestNoGoroutineOutlivesTheServer(t *testing.T) {
	storage := testetcd.Start(t)
	run := func() {
		server, err := aggregated.New(t.Context(), newOptions(t, storage))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-server.Ready()
			cancel()
		}()
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	// Run one server before the comparison, because the first server starts goroutines that
	// libraries share in a process.
	run()
	before := goleak.IgnoreCurrent()
	run()
	// A goroutine that waits for a list ends by its own timer some seconds later. How long all of
	// these goroutines take depends on the machine.
	ticker, limit := time.NewTicker(100*time.Millisecond), time.After(maxWait)
	defer ticker.Stop()
	for leaks := goleak.Find(before); leaks != nil; leaks = goleak.Find(before) {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("after %s: %v", maxWait, leaks)
		}
	}
}
