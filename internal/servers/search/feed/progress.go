package feed

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// State is the state of a feed.
type State struct {
	// Err is the latest error of a source or of the removal of sources. It is nil if nothing fails.
	Err error
	// Since is the time of the first error since the last success. It is zero if Err is nil.
	Since time.Time
	// Lag is the age of the oldest change that is not in the sink. Zero means that the sink is equal
	// to the cache.
	Lag time.Duration
	// Behind is the number of listed sources that are not equal to the cache.
	Behind int
	// Clusters has the state of each cluster that has a listed source.
	Clusters map[string]ClusterState
}

// ClusterState is the state of the objects of one cluster in the sink.
type ClusterState struct {
	// Err is the latest error of a source of the cluster. It is nil if nothing fails.
	Err error
	// Since is the time of the first error since the last success. It is zero if Err is nil.
	Since time.Time
	// Lag is the age of the oldest change that is not in the sink.
	Lag time.Duration
}

// progress holds how far the sources are. It is safe for concurrent use.
type progress struct {
	mu      sync.Mutex
	sources map[sourceKey]*sourceProgress
	kinds   map[schema.GroupVersionKind]kindProgress
	// sinkChanged is the channel by which the sink reports the next loss, and losses is the number of
	// evaluated reports.
	sinkChanged <-chan struct{}
	losses      int
	// cleanup is the progress of the removal of sources.
	cleanup sourceProgress
}

// sourceProgress is how far one source is.
type sourceProgress struct {
	// failure is the latest error, and the time of the first error since the last success.
	failure
	// behindSince is the time of the oldest change that is not in the sink. It is zero if there is
	// none.
	behindSince time.Time
	// isEqual is true if the sink was equal to the cache, and nothing but new changes was found since.
	isEqual bool
}

// State returns the state of the feed.
func (f *Feed) State() State {
	now := time.Now()
	f.progress.mu.Lock()
	defer f.progress.mu.Unlock()
	state := State{Clusters: map[string]ClusterState{}}
	first, firstOf := f.progress.cleanup.failure, map[string]failure{}
	for key, source := range f.progress.sources {
		cluster := state.Clusters[key.cluster]
		lag := source.lag(now)
		if lag > 0 {
			state.Behind++
		}
		state.Lag, cluster.Lag = max(state.Lag, lag), max(cluster.Lag, lag)
		first, firstOf[key.cluster] = earlier(first, source.failure), earlier(firstOf[key.cluster], source.failure)
		cluster.Err, cluster.Since = firstOf[key.cluster].err, firstOf[key.cluster].since
		state.Clusters[key.cluster] = cluster
	}
	state.Err, state.Since = first.err, first.since
	return state
}

// failure is an error with the time at which it began.
type failure struct {
	err   error
	since time.Time
}

// earlier returns the failure that began first, so that the reported error does not change with each
// call.
func earlier(a, b failure) failure {
	switch {
	case b.err == nil:
		return a
	case a.err == nil || b.since.Before(a.since) || b.since.Equal(a.since) && b.err.Error() < a.err.Error():
		return b
	default:
		return a
	}
}

// lag returns the age of the oldest change that is not in the sink, at least 1 ns if there is one.
func (s *sourceProgress) lag(now time.Time) time.Duration {
	if s.behindSince.IsZero() {
		return 0
	}
	return max(now.Sub(s.behindSince), 1)
}

// setBehind records that a source is not equal to the cache.
func (p *progress) setBehind(key sourceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	source := p.sources[key]
	if source == nil {
		source = &sourceProgress{}
		p.sources[key] = source
	}
	if source.behindSince.IsZero() {
		source.behindSince = time.Now()
	}
}

// setApplied records that the latest changes of a source are in the sink. It reports whether the source
// was the last one that failed.
func (p *progress) setApplied(key sourceKey) (isRecovery bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	source := p.sources[key]
	return p.setDone(key, source != nil && source.isEqual)
}

// setCompared records that a comparison made a source equal to the cache. losses is the number of losses
// before the comparison. setCompared reports whether the source was the last one that failed.
func (p *progress) setCompared(key sourceKey, losses int) (isRecovery bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.setDone(key, p.losses == losses)
}

// setDone ends the failure of a source. The caller holds mu.
func (p *progress) setDone(key sourceKey, isEqual bool) (isRecovery bool) {
	source := p.sources[key]
	p.sources[key] = &sourceProgress{isEqual: isEqual}
	return source != nil && source.err != nil && !p.hasFailure()
}

// hasFailure reports whether a source fails. The caller holds mu.
func (p *progress) hasFailure() bool {
	for _, source := range p.sources {
		if source.err != nil {
			return true
		}
	}
	return false
}

// setFailed records an error of a source. It reports whether no source failed before.
func (p *progress) setFailed(key sourceKey, err error) (isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isFirst = !p.hasFailure()
	source := p.sources[key]
	if source == nil {
		source = &sourceProgress{}
		p.sources[key] = source
	}
	source.setFailed(err)
	return isFirst
}

func (s *sourceProgress) setFailed(err error) {
	if s.err == nil {
		s.since = time.Now()
	}
	if s.behindSince.IsZero() {
		s.behindSince = time.Now()
	}
	s.err, s.isEqual = err, false
}

// forget drops a source that is not followed any more.
func (p *progress) forget(key sourceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sources, key)
}

// setCleanup records the result of a removal of sources. It reports whether err is the first error
// since the last success.
func (p *progress) setCleanup(err error) (isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.cleanup = sourceProgress{}
		return false
	}
	isFirst = p.cleanup.err == nil
	p.cleanup.setFailed(err)
	return isFirst
}
