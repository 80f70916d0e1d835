package bounds

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReadPage reads a page of a list and hands it to take. It asks for fewer objects as long
// as a page is too large, and leaves in o how many were asked for last. A page that is
// too large is recorded only if one with a single object is, too: until then nothing is
// lost.
//
// A large page keeps its place among the large answers of the member until take has
// returned: most of its memory is taken after its body was read.
func (c *Caches) ReadPage(ctx context.Context, o *metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), take func(runtime.Object) error,
) error {
	for {
		err := readOnce(ctx, *o, list, take)
		var large *ExceededError
		if !errors.As(err, &large) || !large.isTooLarge() {
			return err
		}
		if o.Limit <= 1 {
			return c.Ledger.Record(*large)
		}
		o.Limit = max(1, o.Limit/4)
	}
}

func readOnce(ctx context.Context, o metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), take func(runtime.Object) error,
) error {
	of := &attempt{}
	defer of.leave()
	page, err := list(context.WithValue(ctx, attemptKey{}, of), o)
	if err != nil {
		return err
	}
	return take(page)
}

// isTooLarge reports whether an answer with fewer objects may be within the bound.
func (e *ExceededError) isTooLarge() bool {
	return e.Bound == AnswerBytes || e.Bound == Values || e.Bound == Decoded
}

// attempt is one request for a page. Its context carries it to the transport.
type attempt struct {
	// place is where the attempt holds one, nil if it holds none.
	place chan struct{}
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	of, _ := ctx.Value(attemptKey{}).(*attempt)
	return of
}

func (a *attempt) leave() {
	if a.place != nil {
		<-a.place
		a.place = nil
	}
}
