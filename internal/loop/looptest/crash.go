// Package looptest is a test kit for reconcile loops: CrashCase stops a loop before and after each
// of its writes, and Indexer adds indexes to a store in memory.
package looptest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// CrashCase describes a loop, and the store on which the loop can be started any number of times.
type CrashCase struct {
	// NewStore returns a new store with the initial objects.
	NewStore func() client.WithWatch
	// NewLoop returns a function that runs one pass of a new loop, which has no state in memory. A
	// pass runs one step of the loop with the client karmada, and then the steps of other
	// components with the client others, which never crashes. The clock continues after a crash. A
	// pass that returns an error is retried.
	NewLoop func(karmada, others client.WithWatch) (pass func(context.Context) error)
	// FinalState returns the state of the store at the end of a run, as text. It omits values that
	// may differ between equivalent runs.
	FinalState func(context.Context, client.Reader) (string, error)
}

const (
	// maxPasses limits the passes of one run.
	maxPasses = 100
	// idlePasses is the number of passes without a write after which a run is complete.
	idlePasses = 3
)

// Run first runs the loop without a crash. Then it crashes the loop twice for each of these writes:
// once before the write is sent, and once after the write is stored but its response is lost. After
// each crash Run starts the loop again, and the restarted loop must reach the same FinalState as
// the run without a crash.
func (c CrashCase) Run(t *testing.T) {
	t.Helper()
	uncrashed := &process{}
	want, err := c.runProcess(t.Context(), uncrashed, c.NewStore())
	if err != nil {
		t.Fatalf("without a crash: %v", err)
	}
	if uncrashed.writes == 0 {
		t.Fatalf("nothing was written on the way to %s", want)
	}
	for nth := 1; nth <= uncrashed.writes; nth++ {
		for side, made := range map[string]bool{"before": false, "after": true} {
			t.Run(fmt.Sprintf("crash %s write %d", side, nth), func(t *testing.T) {
				store := c.NewStore()
				if _, err := c.runProcess(t.Context(), &process{crashAtWrite: nth, writeBeforeCrash: made}, store); !errors.Is(err, errCrashed) {
					t.Fatalf("the process did not crash: %v", err)
				}
				got, err := c.runProcess(t.Context(), &process{}, store)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("another final state (-without crash +with crash):\n%s", diff)
				}
			})
		}
	}
}

// runProcess starts a loop and runs passes until the loop writes nothing more, or the process
// crashes.
func (c CrashCase) runProcess(ctx context.Context, l *process, store client.WithWatch) (end string, err error) {
	pass := c.NewLoop(interceptor.NewClient(store, l.interceptorFuncs()), store)
	var failed error
	for n, before := 0, 0; n < maxPasses; n++ {
		wrote := l.writes
		failed = pass(ctx)
		switch {
		case l.crashed:
			return "", errCrashed
		case failed != nil || l.writes != wrote:
			before = n
		case n-before >= idlePasses:
			return c.FinalState(ctx, store)
		}
	}
	return "", fmt.Errorf("the loop did not end after %d passes: %w", maxPasses, failed)
}

var errCrashed = errors.New("the process has crashed")

// process is one run of a loop.
type process struct {
	// crashAtWrite is the number of the write at which the process crashes, or 0 for no crash.
	// writeBeforeCrash reports whether that write is still sent.
	crashAtWrite     int
	writeBeforeCrash bool

	writes  int
	crashed bool
}

// write sends a write unless the process has crashed.
func (p *process) write(send func() error) error {
	if p.crashed {
		return errCrashed
	}
	p.writes++
	if p.writes != p.crashAtWrite {
		return send()
	}
	p.crashed = true
	if p.writeBeforeCrash {
		if err := send(); err != nil {
			return err
		}
	}
	return errCrashed
}

func (p *process) interceptorFuncs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			return p.write(func() error { return c.Create(ctx, object, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			return p.write(func() error { return c.Update(ctx, object, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			return p.write(func() error { return c.Patch(ctx, object, patch, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return p.write(func() error { return c.Delete(ctx, object, o...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteAllOfOption) error {
			return p.write(func() error { return c.DeleteAllOf(ctx, object, o...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object,
			o ...client.SubResourceUpdateOption) error {
			return p.write(func() error { return c.SubResource(name).Update(ctx, object, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch,
			o ...client.SubResourcePatchOption) error {
			return p.write(func() error { return c.SubResource(name).Patch(ctx, object, patch, o...) })
		},
	}
}
