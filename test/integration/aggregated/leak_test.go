package aggregated_test

import (
	"context"
	"testing"

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
	goleak.VerifyNone(t, before,
		// Ends by its own timer, seconds after the list that waited for it.
		goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshAndBlock.func2"))
}
