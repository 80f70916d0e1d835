package objectcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// minWatchTime is the shortest time after which a member ends a watch regularly. The watch is
	// requested for up to twice this time, so that not all watches end at once.
	minWatchTime = 5 * time.Minute
	// quietFailure is how long a watch may fail before its source becomes Stale. A broken connection
	// is replaced faster, and would otherwise change the status of a registry twice.
	quietFailure = time.Second
	// maxReasonBytes limits the reason in the state of a source.
	maxReasonBytes = 512
)

// sourceWatch keeps the objects of one source up to date. It has at most one running watch.
type sourceWatch struct {
	cache *Cache
	kind  schema.GroupVersionKind
	// retry makes a failed watch run again at once.
	retry chan struct{}
	// listSlots limits the lists of one cluster that are read at the same time.
	listSlots chan struct{}

	mu         sync.Mutex
	cluster    *clusterv1alpha1.Cluster
	namespaces []string
	registries []string
	// writer is nil while it is unknown whether the cluster serves the kind.
	writer *Writer
	// problem is what is wrong while there is no writer, since the time problemSince.
	problem      string
	problemSince time.Time
	isRemoved    bool
	// isSkipped is true if the cluster serves the kind as another resource or with another scope.
	isSkipped bool
	// needsNewList is true if the next watch must list the objects.
	needsNewList bool
	cancel       context.CancelFunc
	// done is closed when the last watch that was started has ended.
	done chan struct{}
	// attempt is the progress of the last watch. Only the running watch uses its content.
	attempt *watchAttempt
}

// start starts the watch, unless it runs.
func (s *sourceWatch) start(ctx context.Context, group *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil || s.isRemoved {
		return
	}
	ctx, s.cancel = context.WithCancel(ctx)
	previous, done := s.done, make(chan struct{})
	s.done = done
	group.Go(func() {
		defer close(done)
		if previous != nil {
			// An old list must not be stored after a new one.
			<-previous
		}
		s.run(ctx)
	})
}

// stop ends the watch and keeps the objects.
func (s *sourceWatch) stop(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
	s.setProblem(reason)
}

// restart ends the watch, keeps the objects, and starts the watch again with a new list.
func (s *sourceWatch) restart(ctx context.Context, group *sync.WaitGroup) {
	s.mu.Lock()
	s.halt()
	s.needsNewList = true
	s.mu.Unlock()
	s.start(ctx, group)
}

// halt ends the running watch. s.mu is locked.
func (s *sourceWatch) halt() {
	if s.cancel != nil {
		s.cancel()
		s.cancel = nil
	}
}

// remove ends the watch and removes the objects.
func (s *sourceWatch) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halt()
	s.isRemoved = true
	s.removeWriter()
}

func (s *sourceWatch) removeWriter() {
	if s.writer != nil {
		s.writer.kind.RemoveCluster(s.writer.Source().Cluster)
		s.writer = nil
	}
}

// setProblem records what is wrong. s.mu is locked.
func (s *sourceWatch) setProblem(reason string) {
	reason = conditions.Truncate(conditions.ToPrintable(reason), maxReasonBytes)
	if s.writer != nil {
		s.writer.SetState(Stale, reason)
		return
	}
	if s.problem != reason {
		s.problem, s.problemSince = reason, s.cache.options.Now()
		s.cache.states.notify()
	}
}

// setSource makes the cache hold the objects of a source. isKnown is true if the member serves the kind
// as the source says. The error matches errNotServed if the kind has another resource or scope.
func (s *sourceWatch) setSource(source Source, isKnown bool) (*Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := s.cache.KindOf(s.kind)
	if s.isRemoved || kind == nil {
		return nil, fmt.Errorf("the kind %s is not selected any more", s.kind.Kind)
	}
	namespaces := s.namespaces
	if !source.Namespaced {
		namespaces = nil
	}
	writer, err := s.cache.admit(kind, source, namespaces, isKnown)
	if err != nil {
		return nil, err
	}
	if s.writer == nil || s.writer.kind != kind || s.writer.source != writer.source {
		s.writer, s.problem = writer, ""
	}
	s.isSkipped = false
	return s.writer, nil
}

// skip records that the kind is not cached for the cluster.
func (s *sourceWatch) skip(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isSkipped = true
	s.setProblem(err.Error())
}

// update changes what the watch needs to know, and retries a failed watch at once if retry is true.
func (s *sourceWatch) update(cluster *clusterv1alpha1.Cluster, namespaces, registries []string, retry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster, s.namespaces, s.registries = cluster, namespaces, registries
	if s.writer != nil {
		source := s.writer.Source()
		if !source.Namespaced {
			namespaces = nil
		}
		s.writer.kind.AddCluster(source, namespaces)
	}
	if retry {
		select {
		case s.retry <- struct{}{}:
		default:
		}
	}
}

func (s *sourceWatch) currentCluster() *clusterv1alpha1.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// resume returns the progress of the last watch. A watch that was stopped continues at the version that is
// known, if the member proves that its numbering did not restart. Otherwise each change of the readiness
// of a cluster would list all objects.
func (s *sourceWatch) resume() *watchAttempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.attempt
	if last == nil || s.needsNewList || last.writer == nil || last.writer != s.writer || last.writer.ResourceVersion() == "" {
		last = &watchAttempt{sourceWatch: s, needsList: true}
	}
	last.needsCheck = !last.needsList
	s.attempt, s.needsNewList = last, false
	return last
}

// run lists and watches until ctx ends.
func (s *sourceWatch) run(ctx context.Context) {
	attempt := s.resume()
	failures, failingSince, delay := 0, time.Time{}, time.Duration(0)
	for ctx.Err() == nil {
		started := s.cache.options.Now()
		err := attempt.follow(ctx)
		lasted := s.cache.options.Now().Sub(started)
		if err == nil && lasted < quietFailure {
			// Otherwise a member that ends each watch at once would get requests without a pause.
			err = errShortWatch
		}
		if attempt.isWatching && !isBound(err) && lasted > 2*delay && lasted > quietFailure {
			failures, failingSince = 0, time.Time{}
		}
		if err == nil {
			continue
		}
		if failures++; failingSince.IsZero() {
			failingSince = s.cache.options.Now()
		}
		s.report(ctx, err, failingSince)
		delay = s.delay(err, failures)
		s.wait(ctx, delay)
	}
}

// report records a failure, unless it is the beginning of a failure of a watch that ran, or the watch
// was stopped.
func (s *sourceWatch) report(ctx context.Context, err error, failingSince time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	isListed := s.writer != nil && s.writer.ResourceVersion() != ""
	if errors.Is(err, errNotServed) && !isListed {
		s.removeWriter()
	}
	var renamed *renamedError
	s.isSkipped = errors.As(err, &renamed) && s.writer == nil
	if isListed && !isBound(err) && !errors.Is(err, errInconsistent) && s.cache.options.Now().Sub(failingSince) < quietFailure {
		return
	}
	s.setProblem(describeFailure(err))
}

// isBound reports whether a limit of Options was exceeded.
func isBound(err error) bool {
	var bound *boundError
	return errors.As(err, &bound)
}

// describeFailure returns the same text for the same failure, because the text becomes part of the status
// of registries.
func describeFailure(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) || isBound(err) || errors.Is(err, errNotServed) || errors.Is(err, errWrongAnswer) ||
		errors.Is(err, errInconsistent) {
		return err.Error()
	}
	return "the cluster cannot be read: " + member.ErrorCause(err)
}

// delay returns the time until the next attempt.
func (s *sourceWatch) delay(err error, failures int) time.Duration {
	retry := s.cache.options.Retry
	longest := retry.Max
	if errors.Is(err, errNotServed) || isBound(err) {
		longest = max(longest, maxNotServedDelay)
	}
	delay := retry.Base << min(failures-1, 30)
	if delay <= 0 || delay > longest {
		delay = longest
	}
	return delay - time.Duration(rand.Int64N(int64(delay)/4+1))
}

// wait waits for a time, or until a change of the cluster makes another attempt useful.
func (s *sourceWatch) wait(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.retry:
	case <-ctx.Done():
	}
}

// watchAttempt is the progress of one running watch.
type watchAttempt struct {
	*sourceWatch
	connection *connection
	writer     *Writer
	// needsList is true if the objects must be listed before they are watched. needsCheck is true
	// after a watch that ended early: the member may have been restored from a backup meanwhile.
	needsList, needsCheck bool
	// isWatching is true if the member answered the watch of this attempt.
	isWatching bool
}

// follow lists the objects if needed, and watches them until the watch ends.
func (w *watchAttempt) follow(ctx context.Context) error {
	w.isWatching = false
	if err := w.connect(ctx); err != nil {
		return err
	}
	if w.needsCheck {
		restarted, err := w.hasRestarted(ctx)
		if err != nil {
			// A kind that is not served any more may come back as another resource.
			w.needsList = w.needsList || apierrors.IsNotFound(err)
			return err
		}
		w.needsList, w.needsCheck = w.needsList || restarted, false
	}
	if w.needsList {
		if err := w.list(ctx); err != nil {
			return err
		}
		w.needsList = false
	}
	timeout := minWatchTime + rand.N(minWatchTime)
	began := time.Now()
	err := w.watch(ctx, timeout)
	w.needsList, w.needsCheck = isListNeeded(err), time.Since(began) < timeout-time.Second
	return err
}

// isListNeeded reports whether a watch cannot continue after an error.
func isListNeeded(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsNotFound(err) || isBound(err) || errors.Is(err, errWrongAnswer)
}

// connect gets the connection to the member. With another connection the objects are listed again,
// because it may lead to another cluster.
func (w *watchAttempt) connect(ctx context.Context) error {
	cluster := w.currentCluster()
	connection, err := w.cache.watches.connections.get(ctx, cluster)
	if err != nil {
		return err
	}
	if w.connection != connection {
		w.connection, w.needsList = connection, true
	}
	if !w.needsList {
		return nil
	}
	source, err := connection.discover(ctx, cluster.Name, w.sourceWatch.kind)
	if err != nil {
		return err
	}
	writer, err := w.setSource(source, true)
	if err != nil {
		return err
	}
	w.writer = writer
	return nil
}

// watch applies the events of a member until the member ends the watch, which it does after timeout.
func (w *watchAttempt) watch(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seconds := int64(timeout.Seconds())
	// A member that accepts the request and never answers looks like a quiet watch.
	unanswered := time.AfterFunc(member.RequestTimeout, cancel)
	events, err := w.resource().Watch(ctx, metav1.ListOptions{
		ResourceVersion: w.writer.ResourceVersion(), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if !unanswered.Stop() && err == nil {
		events.Stop()
		err = context.DeadlineExceeded
	}
	if err != nil {
		return fmt.Errorf("watching %s: %w", w.writer.Source().describe(), err)
	}
	defer events.Stop()
	w.isWatching = true
	w.setCurrent(ctx)
	for event := range events.ResultChan() {
		if err := w.apply(event); err != nil {
			return fmt.Errorf("watching %s: %w", w.writer.Source().describe(), err)
		}
	}
	return nil
}

// errShortWatch reports that a member ended a watch at once. Without an error, the watch would be
// requested again and again without a delay.
var errShortWatch = errors.New("the member ended the watch at once")

// setCurrent records that the watch runs, unless it was stopped meanwhile.
func (w *watchAttempt) setCurrent(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil && w.sourceWatch.writer == w.writer {
		w.writer.SetState(Current, "")
	}
}

// apply applies one event of a watch.
func (w *watchAttempt) apply(event watch.Event) error {
	object, ok := event.Object.(*unstructured.Unstructured)
	if event.Type == watch.Error || !ok {
		return apierrors.FromObject(event.Object)
	}
	if event.Type == watch.Bookmark {
		w.writer.Bookmark(object.GetResourceVersion())
		return nil
	}
	if err := w.validate(object); err != nil {
		return err
	}
	if event.Type == watch.Deleted {
		w.writer.Remove(object.GetNamespace(), object.GetName(), object.GetResourceVersion())
		return nil
	}
	encoded, err := w.writer.Encode(object)
	if err != nil {
		return err
	}
	if err := w.writer.checkGrowth(encoded); err != nil {
		return err
	}
	w.writer.Set(encoded)
	return w.cache.options.checkLimits(w.writer.held())
}
