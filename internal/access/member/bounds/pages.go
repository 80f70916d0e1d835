package bounds

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ReadPage reads a page of a list and passes it to take. While a page is too large, ReadPage
// requests a page with fewer objects, and stores the last number of objects in o.Limit. It records
// the exceeded limit only if a page with a single object is too large, because larger pages can be
// requested in parts.
//
// A large page holds a slot for large responses (see slotBody) until take has returned, because most
// memory for the page is allocated after its body was read.
func (m *MemberBounds) ReadPage(ctx context.Context, o *metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), take func(runtime.Object) error,
) error {
	for {
		err := readPageOnce(ctx, *o, list, take)
		var large *ExceededError
		if !errors.As(err, &large) || !large.isTooLarge() {
			return err
		}
		if o.Limit <= 1 {
			return m.Hits.Record(*large)
		}
		o.Limit = max(1, o.Limit/4)
	}
}

// CheckPages returns an error if a list has many pages with few objects. Such a list might never end.
func (m *MemberBounds) CheckPages(subject string, pages, objects int) error {
	if int64(pages) <= m.Limits.MinPages+int64(objects) {
		return nil
	}
	return m.Hits.Record(ExceededError{
		Bound: Pages, Subject: subject, Detail: fmt.Sprintf("the list continues after %d pages with few objects", m.Limits.MinPages),
	})
}

func readPageOnce(ctx context.Context, o metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error), take func(runtime.Object) error,
) error {
	attempt := &pageAttempt{}
	defer attempt.releaseSlot()
	page, err := list(context.WithValue(ctx, pageAttemptKey{}, attempt), o)
	if err != nil {
		return err
	}
	return take(page)
}

// isTooLarge reports whether the same request with fewer objects may be within the limits.
func (e *ExceededError) isTooLarge() bool {
	return e.Bound == AnswerBytes || e.Bound == JSONValues || e.Bound == DecodedBytes
}

// pageAttempt is one request for a page. The transport gets it from the context of the request.
type pageAttempt struct {
	// slots is the semaphore in which the attempt holds a slot, or nil while the attempt holds no
	// slot.
	slots chan struct{}
}

type pageAttemptKey struct{}

func pageAttemptFrom(ctx context.Context) *pageAttempt {
	attempt, _ := ctx.Value(pageAttemptKey{}).(*pageAttempt)
	return attempt
}

func (p *pageAttempt) releaseSlot() {
	if p.slots != nil {
		<-p.slots
		p.slots = nil
	}
}
