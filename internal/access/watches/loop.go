package watches

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"karmada.io/karmada/internal/access/member/bounds"
)

const (
	// pageSize is the number of objects that are requested for one page of a list without bounds.
	pageSize = 250
	// minWatchTime is the shortest timeout of a watch request. The timeout is chosen between this
	// time and twice this time, so that not all watches end at once.
	minWatchTime = 5 * time.Minute
	// responseTimeout is how long the API server may take to accept a watch request. Without this
	// limit, a server that never responds looks like a kind without changes.
	responseTimeout = 32 * time.Second
	// minBackoff and maxBackoff limit the delay between two failed attempts.
	minBackoff, maxBackoff = 200 * time.Millisecond, 30 * time.Second
	// maxBoundBackoff limits the delay if the objects exceed a limit. It is longer, because a list up to
	// a limit is expensive.
	maxBoundBackoff = 5 * time.Minute
	// stableTime is how long a watch must run before its next failure counts as the first one.
	stableTime = time.Second
	// maxExpirations limits how often one list continues after its history was compacted.
	maxExpirations = 100
)

// Source lists and watches objects of one kind in one API server.
type Source struct {
	// Subject names the objects in messages, such as "deployments.v1.apps".
	Subject     string
	ListPage    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	WatchEvents func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Bounds limits the responses. nil sets no limits.
	Bounds *bounds.MemberBounds
	// PageSize is the number of objects that are requested for one page of a list. The default is that
	// of Bounds, or 250.
	PageSize int64
}

// Client is a typed or dynamic client for one kind. L is the type of its lists.
type Client[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// NewSource returns a source that sends its requests with a client. Empty selectors select all objects.
func NewSource[L runtime.Object](client Client[L], subject, labelSelector, fieldSelector string, limits *bounds.MemberBounds) *Source {
	return &Source{
		Subject: subject, Bounds: limits,
		ListPage: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector, o.FieldSelector = labelSelector, fieldSelector
			return client.List(ctx, o)
		},
		WatchEvents: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector, o.FieldSelector = labelSelector, fieldSelector
			return client.Watch(ctx, o)
		},
	}
}

// Sink receives the objects of a source. Its methods are called one after another. An error of
// AddListed or Apply ends the current attempt, and the next attempt lists all objects again.
type Sink interface {
	// BeginList is called before the first page of a list is read.
	BeginList()
	// AddListed is called for each object of the list.
	AddListed(object runtime.Object) error
	// EndList is called after the last page of the list. If err is not nil, the list failed and its
	// objects must be dropped. Objects that a complete list does not contain were deleted.
	EndList(err error)
	// Apply is called for each event after the list. The event type is Added, Modified, Deleted or
	// Bookmark. The object of a Bookmark contains only a resource version.
	Apply(event watch.Event) error
}

// Loop keeps a sink up to date with a source. Its invariants are:
//   - The sink gets every object of a list, and every change after the list.
//   - Only one page of decoded objects is in memory at a time.
//   - An attempt that fails changes nothing in the sink. A watch that ended is resumed at the last
//     resource version, if the API server proves that it still counts from there.
type Loop struct {
	// Open returns the source of the next attempt. If it returns another source than before, the
	// objects are listed again. See FixedSource for a source that never changes.
	Open func(ctx context.Context) (*Source, error)
	Sink Sink
	// OnOutcome is called with nil after the API server accepted a watch, and with the error after a
	// failed attempt. It may be nil.
	OnOutcome func(err error)
	// Retry ends the backoff after a failed attempt early. It may be nil.
	Retry <-chan struct{}

	source *Source
	// version is the resource version of the last observed change. It is empty if the objects must
	// be listed.
	version string
	// isUnproven is true after a watch ended early. The API server may have been restored from a
	// backup meanwhile.
	isUnproven bool
}

// FixedSource returns a function Open for a source that never changes.
func FixedSource(source *Source) func(context.Context) (*Source, error) {
	return func(context.Context) (*Source, error) { return source, nil }
}

// Run lists and watches until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		started := time.Now()
		isWatching, err := l.attempt(ctx)
		if ctx.Err() != nil {
			return
		}
		lasted := time.Since(started)
		if err == nil && lasted < stableTime {
			err = errShortWatch
		}
		if err == nil || isWatching && !isBoundExceeded(err) && lasted > stableTime {
			failures = 0
		}
		if err == nil {
			continue
		}
		failures++
		l.report(err)
		l.wait(ctx, backoff(err, failures))
	}
}

// errNoResponse reports that the API server did not accept a watch in time.
var errNoResponse = fmt.Errorf("no response within %s", responseTimeout)

// errShortWatch reports that the API server ended a watch at once. Without this error, the watch
// would be requested again and again without a delay.
var errShortWatch = errors.New("the API server ended the watch at once")

func (l *Loop) report(err error) {
	if l.OnOutcome != nil {
		l.OnOutcome(err)
	}
}

// backoff returns the delay before the next attempt: it doubles with each failure, and is shortened
// at random by up to a quarter.
func backoff(err error, failures int) time.Duration {
	longest := maxBackoff
	if isBoundExceeded(err) {
		longest = maxBoundBackoff
	}
	delay := min(minBackoff<<min(failures-1, 20), longest)
	return delay - time.Duration(rand.Int64N(int64(delay)/4+1))
}

func isBoundExceeded(err error) bool { return errors.As(err, new(*bounds.ExceededError)) }

// wait waits for a delay. A retry ends it early, but not so early that many retries flood the API server.
func (l *Loop) wait(ctx context.Context, delay time.Duration) {
	earliest, timer := time.NewTimer(min(delay, minBackoff)), time.NewTimer(delay)
	defer earliest.Stop()
	defer timer.Stop()
	select {
	case <-earliest.C:
	case <-ctx.Done():
		return
	}
	select {
	case <-timer.C:
	case <-l.Retry:
	case <-ctx.Done():
	}
}

// attempt lists the objects if needed, and watches them until the watch ends. isWatching reports
// whether the API server accepted the watch.
func (l *Loop) attempt(ctx context.Context) (isWatching bool, err error) {
	source, err := l.Open(ctx)
	if err != nil {
		return false, err
	}
	if source != l.source {
		l.source, l.version = source, ""
	}
	if l.version != "" && l.isUnproven {
		if err := l.proveVersion(ctx); err != nil {
			return false, err
		}
	}
	if l.version == "" {
		if err := l.list(ctx); err != nil {
			return false, err
		}
	}
	timeout := minWatchTime + rand.N(minWatchTime)
	started := time.Now()
	isWatching, err = l.watch(ctx, timeout)
	l.isUnproven = time.Since(started) < timeout-time.Second
	if err != nil && !canResume(err) {
		l.version = ""
	}
	return isWatching, err
}

// canResume reports whether a watch can continue at the last resource version after an error.
func canResume(err error) bool {
	return !errors.As(err, new(*sinkError)) && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && !apierrors.IsInvalid(err) &&
		!apierrors.IsBadRequest(err) && !apierrors.IsNotFound(err)
}

// sinkError is an error of a sink. The sink may have missed an event.
type sinkError struct{ error }

// Unwrap returns the error that the sink returned.
func (s *sinkError) Unwrap() error { return s.error }

// proveVersion drops the resource version if the API server counts from a lower one. A watch at a
// future resource version would get no events until the API server reaches it.
func (l *Loop) proveVersion(ctx context.Context) error {
	options, current := metav1.ListOptions{Limit: 1}, ""
	err := l.readPage(ctx, &options, func(page runtime.Object) error {
		list, err := meta.ListAccessor(page)
		if err == nil {
			current = list.GetResourceVersion()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the current resource version: %w", err)
	}
	if isOlder(current, l.version) {
		l.version = ""
	}
	l.isUnproven = false
	return nil
}

// watch passes events to the sink until the API server ends the watch.
func (l *Loop) watch(ctx context.Context, timeout time.Duration) (isWatching bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	responseTimer := time.AfterFunc(responseTimeout, cancel)
	seconds := int64(timeout.Seconds())
	events, err := l.source.WatchEvents(ctx, metav1.ListOptions{
		ResourceVersion: l.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if !responseTimer.Stop() {
		if err == nil {
			events.Stop()
		}
		err = errNoResponse
	}
	if err != nil {
		return false, fmt.Errorf("starting the watch: %w", err)
	}
	defer events.Stop()
	l.report(nil)
	for {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case event, ok := <-events.ResultChan():
			if !ok {
				return true, nil
			}
			if err := l.apply(event); err != nil {
				return true, err
			}
		}
	}
}

func (l *Loop) apply(event watch.Event) error {
	object, err := meta.Accessor(event.Object)
	if event.Type == watch.Error || err != nil {
		return apierrors.FromObject(event.Object)
	}
	if err := l.Sink.Apply(event); err != nil {
		return &sinkError{err}
	}
	l.version = object.GetResourceVersion()
	return nil
}
