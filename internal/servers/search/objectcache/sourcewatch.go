package objectcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
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
	// sink and loop read the objects. Only the running watch uses them.
	sink *memberSink
	loop *watches.Loop

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
	// workingSince is the time at which the watch was last started. failingSince is the time of the
	// first failure since a watch lasted for more than quietFailure.
	workingSince, failingSince time.Time
	// isRunning is true until the running watch is stopped with cancel.
	isRunning bool
	cancel    context.CancelFunc
	// done is closed when the last watch that was started has ended.
	done chan struct{}
}

func newSourceWatch(c *Cache, kind schema.GroupVersionKind, cluster *clusterv1alpha1.Cluster) *sourceWatch {
	s := &sourceWatch{cache: c, kind: kind, retry: make(chan struct{}, 1), cluster: cluster, problemSince: c.options.Now()}
	s.sink = &memberSink{sourceWatch: s}
	s.loop = &watches.Loop{Open: s.sink.open, Sink: s.sink, OnOutcome: s.recordOutcome, Retry: s.retry}
	return s
}

// start starts the watch, unless it runs.
func (s *sourceWatch) start(ctx context.Context, group *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isRunning || s.isRemoved {
		return
	}
	s.isRunning = true
	ctx, s.cancel = context.WithCancel(ctx)
	previous, done := s.done, make(chan struct{})
	s.done = done
	group.Go(func() {
		defer close(done)
		if previous != nil {
			// An old list must not be stored after a new one.
			<-previous
		}
		s.loop.Run(ctx)
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
	if s.isRunning {
		s.cancel()
		s.isRunning = false
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

// recordOutcome records whether the watch works. It ignores a watch that was stopped, and the beginning of
// a failure of a watch that worked.
func (s *sourceWatch) recordOutcome(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isRunning {
		return
	}
	now := s.cache.options.Now()
	if err == nil {
		s.workingSince = now
		if s.writer != nil && s.writer == s.sink.writer {
			s.writer.SetState(Current, "")
		}
		return
	}
	if s.failingSince.IsZero() || s.workingSince.After(s.failingSince) && now.Sub(s.workingSince) > quietFailure {
		s.failingSince = now
	}
	isListed := s.writer != nil && s.writer.ResourceVersion() != ""
	if apierrors.IsNotFound(err) || errors.Is(err, errNotServed) {
		// The kind may come back as another resource.
		s.needsNewList = true
	}
	if errors.Is(err, errNotServed) && !isListed {
		s.removeWriter()
	}
	var renamed *renamedError
	s.isSkipped = errors.As(err, &renamed) && s.writer == nil
	if isListed && !isBound(err) && !errors.Is(err, watches.ErrInconsistent) && now.Sub(s.failingSince) < quietFailure {
		return
	}
	s.setProblem(describeFailure(err))
}

// isBound reports whether a limit was exceeded.
func isBound(err error) bool { return errors.As(err, new(*bounds.ExceededError)) }

// describeFailure returns the same text for the same failure, because the text becomes part of the status
// of registries.
func describeFailure(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) || isBound(err) || errors.Is(err, errNotServed) || errors.Is(err, errUnexpectedResponse) ||
		errors.Is(err, watches.ErrInconsistent) {
		return err.Error()
	}
	return "the cluster cannot be read: " + member.ErrorCause(err)
}
