// Package crashtest answers "what if the process of a loop dies around one of its
// writes?", for tests of loops over a store in memory.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Case is a loop in a world that may be begun any number of times.
type Case struct {
	// Store is a new store with what there is in the beginning.
	Store func() client.WithWatch
	// Start makes a loop that remembers nothing. A pass does what the loop would do
	// next, and then whoever else is at work in the world, by the client of the others,
	// who do not die. Time goes on by itself. An error is one that is tried again.
	Start func(karmada, others client.WithWatch) (pass func(context.Context) error)
	// End is what is stored, without what differs between runs that end alike.
	End func(context.Context, client.Reader) (string, error)
}

const (
	// passes is how many the longest way may take.
	passes = 100
	// calm is how many passes without a write are the end.
	calm = 3
)

// Run lets the loop go its way undisturbed first. Then for each write that it made it
// dies once before the write, which is never made, and once after it, of which it never
// hears; it is started anew, and must come to the same end.
func (c Case) Run(t *testing.T) {
	t.Helper()
	undisturbed := &life{}
	want, err := c.live(t.Context(), undisturbed, c.Store())
	if err != nil {
		t.Fatalf("undisturbed: %v", err)
	}
	if undisturbed.writes == 0 {
		t.Fatalf("nothing was written on the way to %s", want)
	}
	for nth := 1; nth <= undisturbed.writes; nth++ {
		for side, made := range map[string]bool{"before": false, "after": true} {
			t.Run(fmt.Sprintf("it dies %s write %d", side, nth), func(t *testing.T) {
				store := c.Store()
				if _, err := c.live(t.Context(), &life{last: nth, made: made}, store); !errors.Is(err, errDead) {
					t.Fatalf("it lives on: %v", err)
				}
				got, err := c.live(t.Context(), &life{}, store)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("another end (-undisturbed +this):\n%s", diff)
				}
			})
		}
	}
}

// live starts a loop and lets it pass until nothing is written any more, or it dies.
func (c Case) live(ctx context.Context, l *life, store client.WithWatch) (end string, err error) {
	pass := c.Start(interceptor.NewClient(store, l.funcs()), store)
	var failed error
	for n, before := 0, 0; n < passes; n++ {
		wrote := l.writes
		failed = pass(ctx)
		switch {
		case l.dead:
			return "", errDead
		case failed != nil || l.writes != wrote:
			before = n
		case n-before >= calm:
			return c.End(ctx, store)
		}
	}
	return "", fmt.Errorf("it has not come to an end after %d passes: %w", passes, failed)
}

var errDead = errors.New("the process is dead")

// life is one life of a loop.
type life struct {
	// last is the number of the write around which it ends, 0 for none; made tells
	// that the write is still made.
	last int
	made bool

	writes int
	dead   bool
}

// write makes a write if the process lives.
func (l *life) write(send func() error) error {
	if l.dead {
		return errDead
	}
	l.writes++
	if l.writes != l.last {
		return send()
	}
	l.dead = true
	if l.made {
		if err := send(); err != nil {
			return err
		}
	}
	return errDead
}

func (l *life) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			return l.write(func() error { return c.Create(ctx, object, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.UpdateOption) error {
			return l.write(func() error { return c.Update(ctx, object, o...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, o ...client.PatchOption) error {
			return l.write(func() error { return c.Patch(ctx, object, patch, o...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
			return l.write(func() error { return c.Delete(ctx, object, o...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteAllOfOption) error {
			return l.write(func() error { return c.DeleteAllOf(ctx, object, o...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, object client.Object, o ...client.SubResourceUpdateOption) error {
			return l.write(func() error { return c.SubResource(name).Update(ctx, object, o...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, object client.Object, patch client.Patch, o ...client.SubResourcePatchOption) error {
			return l.write(func() error { return c.SubResource(name).Patch(ctx, object, patch, o...) })
		},
	}
}
