package feed

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// maxEqualLag is the maximum age of changes that a sink may lack while it still counts as equal to the
// cache.
const maxEqualLag = 3 * time.Second

// State is the state of a feed.
type State struct {
	ClusterState
	// Behind is the number of listed sources whose stored objects are not equal to the cache.
	Behind int
	// Clusters contains the state of each cluster with a listed source.
	Clusters map[string]ClusterState
}

// ClusterState is the state of one cluster's objects in the sink, or of all clusters' objects.
type ClusterState struct {
	// Err is the error that began first, so that it does not change with each call. It is nil if
	// nothing fails.
	Err error
	// Since is the time of the first error since the last success. It is zero if Err is nil.
	Since time.Time
	// Lag is the age of the oldest change that the sink does not have. It is zero if the sink is equal
	// to the cache.
	Lag time.Duration
}

// add adds the state of one source.
func (s *ClusterState) add(err error, since time.Time, lag time.Duration) {
	s.Lag = max(s.Lag, lag)
	isFirst := s.Err == nil || since.Before(s.Since) || since.Equal(s.Since) && err != nil && err.Error() < s.Err.Error()
	if err != nil && isFirst {
		s.Err, s.Since = err, since
	}
}

// progress contains the state of all sources. It is safe for concurrent use.
type progress struct {
	mu      sync.Mutex
	sources map[sourceKey]*sourceProgress
	// busySince maps each followed kind to the time at which its follower had last read all changes.
	// The time is zero while the follower waits for changes.
	busySince map[schema.GroupVersionKind]time.Time
	// cleanup is the state of removing missing sources.
	cleanup sourceProgress
}

// sourceProgress is the state of one source in the sink.
type sourceProgress struct {
	// isEqual is true if the sink has been equal to the cache, except for changes since behindSince.
	isEqual bool
	// behindSince is the time of the oldest change that the sink does not have, or zero.
	behindSince time.Time
	// err is the last error, and failedSince the time of the first error since the last success.
	err         error
	failedSince time.Time
}

// lag returns the age of the oldest change that the sink does not have. It is at least 1 ns if there is
// one.
func (s *sourceProgress) lag(now time.Time) time.Duration {
	if s.behindSince.IsZero() {
		return 0
	}
	return max(now.Sub(s.behindSince), 1)
}

func (s *sourceProgress) setFailed(err error) {
	now := time.Now()
	if s.err == nil {
		s.failedSince = now
	}
	if s.behindSince.IsZero() {
		s.behindSince = now
	}
	s.err, s.isEqual = err, false
}

// State returns the feed's state.
func (f *Feed) State() State {
	p, now := &f.progress, time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	state := State{Clusters: map[string]ClusterState{}}
	state.add(p.cleanup.err, p.cleanup.failedSince, 0)
	for key, source := range p.sources {
		lag := source.lag(now)
		if lag > 0 {
			state.Behind++
		}
		state.add(source.err, source.failedSince, lag)
		cluster := state.Clusters[key.cluster]
		cluster.add(source.err, source.failedSince, lag)
		state.Clusters[key.cluster] = cluster
	}
	return state
}

// IsEqual reports whether the sink has all of the source's objects, except for changes in the last
// three seconds. It returns false for a source that has not been compared with the sink yet.
func (f *Feed) IsEqual(source objectcache.Source) bool {
	p, key, now := &f.progress, keyOf(source), time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	s, isKnown := p.sources[key]
	busySince, isFollowed := p.busySince[key.kind]
	return isKnown && isFollowed && s.isEqual && s.lag(now) <= maxEqualLag && (busySince.IsZero() || now.Sub(busySince) <= maxEqualLag)
}

// setWaiting records that the kind's follower has read all changes and waits for more.
func (p *progress) setWaiting(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busySince[kind] = time.Time{}
}

// setBusy records that the kind's follower is writing and does not read changes.
func (p *progress) setBusy(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busySince[kind].IsZero() {
		p.busySince[kind] = time.Now()
	}
}

// forgetKind forgets a kind that is no longer followed.
func (p *progress) forgetKind(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busySince, kind)
}

// source returns the state of a source. The caller must hold mu.
func (p *progress) source(key sourceKey) *sourceProgress {
	if p.sources[key] == nil {
		p.sources[key] = &sourceProgress{}
	}
	return p.sources[key]
}

// setUnequal records that a source must be compared.
func (p *progress) setUnequal(key sourceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if source := p.sources[key]; source != nil {
		source.isEqual = false
	}
}

// setBehind records that the sink does not have all of the source's changes.
func (p *progress) setBehind(key sourceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if source := p.source(key); source.behindSince.IsZero() {
		source.behindSince = time.Now()
	}
}

// setEqual records that the source is equal to the cache. It reports whether the source was the last
// one that failed.
func (p *progress) setEqual(key sourceKey) (isRecovery bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hadFailed := p.source(key).err != nil
	p.sources[key] = &sourceProgress{isEqual: true}
	return hadFailed && !p.hasFailure()
}

// setFailed records the source's error. It reports whether no source had failed before.
func (p *progress) setFailed(key sourceKey, err error) (isFirst bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isFirst = !p.hasFailure()
	p.source(key).setFailed(err)
	return isFirst
}

// hasFailure reports whether any source fails. The caller must hold mu.
func (p *progress) hasFailure() bool {
	for _, source := range p.sources {
		if source.err != nil {
			return true
		}
	}
	return false
}

// forget forgets a source that is no longer followed.
func (p *progress) forget(key sourceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sources, key)
}

// setCleanup records the result of removing missing sources. It reports whether err is the first error
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
