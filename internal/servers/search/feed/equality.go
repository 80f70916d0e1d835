package feed

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// maxEqualLag is the age of changes that a sink may miss while it counts as equal to the cache.
const maxEqualLag = 3 * time.Second

// kindProgress is how far a follower read the changes of its kind.
type kindProgress struct {
	// isWaiting is true while the follower read all changes and waits for the next one.
	isWaiting bool
	// caughtUp is the last time at which the follower had read all changes.
	caughtUp time.Time
}

// IsEqual reports whether the sink has all objects of a source, except changes of the last three
// seconds. It is false for a source that was not compared with the sink yet.
func (f *Feed) IsEqual(source objectcache.Source) bool {
	return f.progress.isEqual(keyOf(source), time.Now())
}

func (p *progress) isEqual(key sourceKey, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Between a loss that the sink reports and its evaluation, the sources are not marked yet.
	if isClosed(p.sinkChanged) {
		return false
	}
	source, kind := p.sources[key], p.kinds[key.kind]
	return source != nil && source.isEqual && source.lag(now) <= maxEqualLag && (kind.isWaiting || now.Sub(kind.caughtUp) <= maxEqualLag)
}

// setWaiting records that the follower of a kind read all changes and waits for the next one.
func (p *progress) setWaiting(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kinds[kind] = kindProgress{isWaiting: true}
}

// setBusy records that the follower of a kind reads no changes, because it writes those that it read.
func (p *progress) setBusy(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kinds[kind].isWaiting {
		p.kinds[kind] = kindProgress{caughtUp: time.Now()}
	}
}

// forgetKind drops a kind that is not followed any more.
func (p *progress) forgetKind(kind schema.GroupVersionKind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kinds, kind)
}

// setUnequal records that a source must be compared.
func (p *progress) setUnequal(key sourceKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if source := p.sources[key]; source != nil {
		source.isEqual = false
	}
}

// setSinkChanged sets the channel by which the sink reports the next loss. isLoss is true if the sink
// reported a loss before: then all sources must be compared.
func (p *progress) setSinkChanged(changed <-chan struct{}, isLoss bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sinkChanged = changed
	if !isLoss {
		return
	}
	p.losses++
	for _, source := range p.sources {
		source.isEqual = false
	}
}

// lossCount returns the number of losses. A comparison during which it changes proves nothing.
func (p *progress) lossCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses
}
