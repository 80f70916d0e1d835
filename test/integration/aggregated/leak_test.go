package aggregated_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"karmada.io/karmada/internal/servers/aggregated"
)

func TestEverythingEndsWithTheContext(t *testing.T) {
	etcd := startEtcd(t)
	run := func() {
		server, err := aggregated.New(options(t, etcd))
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
	// The first server starts what the libraries share in a process.
	run()
	before := goleak.IgnoreCurrent()
	run()
	// One that waits for a list ends by its own timer, seconds after it; all of them
	// take as long as the machine does.
	again, limit := time.NewTicker(100*time.Millisecond), time.After(patience)
	defer again.Stop()
	for left := goleak.Find(before); left != nil; left = goleak.Find(before) {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("after %s: %v", patience, left)
		}
	}
}
