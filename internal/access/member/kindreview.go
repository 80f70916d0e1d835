package member

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	offered "karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/servedkinds"
)

const (
	// defaultAbsenceDelay is how long discovery must report a kind as absent before the watch of
	// the kind ends.
	defaultAbsenceDelay = 5 * time.Second
	// minReviewDelay and maxReviewDelay are the shortest and the longest delay between two reviews
	// of a kind. A review asks discovery whether the member serves the kind.
	minReviewDelay, maxReviewDelay = time.Second, 10 * time.Second
)

// watchedKinds contains the kinds that are watched in a member, and the kinds whose watch ended
// because the member does not serve them.
type watchedKinds struct {
	mu      sync.Mutex
	watches map[schema.GroupVersionKind]*kindWatch
	// isReviewing is true while a goroutine reviews kinds.
	isReviewing bool
	reviews     sync.WaitGroup
	// absenceDelay and minDelay default to defaultAbsenceDelay and minReviewDelay. Tests shorten
	// them.
	absenceDelay, minDelay time.Duration
}

// kindWatch is the watch of one kind.
type kindWatch struct {
	// informer is nil after the watch ended.
	informer cache.Informer
	state    servedkinds.WatchState
	// isDoubted is true while it is in doubt whether the member serves the kind: it is set when a
	// list returned "not found", and cleared when discovery shows that the kind is served.
	isDoubted bool
	// isConfirmed is true if the last review found that the kind is served.
	isConfirmed bool
	// denial is the error with which the member rejected the watch. deniedAt is the time of that
	// error.
	denial   error
	deniedAt time.Time
	// reviewedAt is the time of the last review. reviewDelay is the delay until the next review.
	reviewedAt  time.Time
	reviewDelay time.Duration
}

func newWatchedKinds() watchedKinds {
	return watchedKinds{watches: map[schema.GroupVersionKind]*kindWatch{}, absenceDelay: defaultAbsenceDelay, minDelay: minReviewDelay}
}

// list returns the watched kinds.
func (w *watchedKinds) list() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.watches))
}

// isReviewDue reports whether a kind whose watch ended should be reviewed now. It returns false
// shortly after a review, because many Works may need the kind at the same time and each would
// cause a review.
func (w *watchedKinds) isReviewDue(kind schema.GroupVersionKind, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch := w.watches[kind]
	return watch != nil && watch.state.Stopped && now.Sub(watch.reviewedAt) >= w.minDelay
}

// dueReviews returns the kinds to review now. left is false if no kind is in doubt and no watch has
// ended. In that case the reviews end, and the next doubt starts them again.
func (w *watchedKinds) dueReviews(now time.Time) (due []schema.GroupVersionKind, left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, watch := range w.watches {
		if !watch.isDoubted && !watch.state.Stopped {
			continue
		}
		left = true
		if now.Sub(watch.reviewedAt) >= watch.reviewDelay {
			due = append(due, kind)
		}
	}
	w.isReviewing = left
	return due, left
}

// onWatchError is called when the list or watch of a kind fails. For "not found" it asks discovery,
// because the kind may be removed. Other errors do not show whether the kind is served.
func (m *Member) onWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) && m.recordDenial(reflector.TypeDescription(), err) {
		return
	}
	if !apierrors.IsNotFound(err) || !m.doubtKind(reflector.TypeDescription()) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// doubtKind starts reviews of a kind. It reports whether the removal of the kind may explain the
// failure: the kind is watched, and discovery has not yet shown that it is served.
func (m *Member) doubtKind(description string) bool {
	k := &m.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, watch := range k.watches {
		if kind.String() != description {
			continue
		}
		if !watch.isDoubted {
			watch.isDoubted, watch.reviewDelay, watch.reviewedAt = true, k.minDelay, time.Now()
		}
		if !k.isReviewing && m.ctx.Err() == nil {
			k.isReviewing = true
			k.reviews.Go(m.reviewDoubtedKinds)
		}
		return !watch.isConfirmed
	}
	return false
}

// reviewDoubtedKinds reviews the kinds in doubt and the kinds whose watch ended, until there are
// none.
func (m *Member) reviewDoubtedKinds() {
	ticker := time.NewTicker(m.kinds.minDelay)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
		}
		due, left := m.kinds.dueReviews(time.Now())
		if !left {
			return
		}
		for _, kind := range due {
			m.reviewKind(kind)
		}
	}
}

// reviewKind asks discovery whether the member serves a kind, and ends or restarts the watch of the
// kind.
func (m *Member) reviewKind(kind schema.GroupVersionKind) {
	answer, err := offered.Lookup(m.discovery, kind)
	if err != nil {
		klog.FromContext(m.ctx).V(2).Info("Cannot determine whether the member serves a kind", "member", m.Name, "kind", kind, "cause", err)
	}
	if m.applyAnswer(kind, answer) {
		klog.FromContext(m.ctx).Info("Started the watch of a kind that the member serves again", "member", m.Name, "kind", kind)
		m.onWatchRestored(kind)
	}
}

// applyAnswer ends or starts the watch of a kind as the discovery answer requires. It reports
// whether the watch was started again.
func (m *Member) applyAnswer(kind schema.GroupVersionKind, answer servedkinds.Availability) (began bool) {
	k := &m.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	watch := k.watches[kind]
	if watch == nil || m.ctx.Err() != nil {
		return false
	}
	watch.reviewedAt, watch.reviewDelay = time.Now(), min(2*watch.reviewDelay, maxReviewDelay)
	previous := watch.state
	var step servedkinds.WatchAction
	watch.state, step = previous.Next(answer, watch.reviewedAt, k.absenceDelay)
	watch.isConfirmed = answer == servedkinds.Served
	watch.isDoubted = watch.isDoubted && !watch.isConfirmed
	switch step {
	case servedkinds.StopWatch:
		m.endWatch(kind, watch)
	case servedkinds.StartWatch:
		informer, err := m.startInformer(m.ctx, kind)
		if err != nil {
			// A later review starts the watch, because the discovery of all kinds and the discovery
			// of one group version can differ for a moment.
			klog.FromContext(m.ctx).V(2).Info("Cannot watch a kind yet that the member serves again", "member", m.Name, "kind", kind, "cause", err)
			watch.state = previous
			return false
		}
		watch.informer = informer
		return true
	}
	return false
}

// endWatch ends the watch of a kind. It does not notify subscribers, because the end of the watch
// does not mean that objects were deleted.
func (m *Member) endWatch(kind schema.GroupVersionKind, watch *kindWatch) {
	watch.informer, watch.reviewDelay = nil, m.kinds.minDelay
	log := klog.FromContext(m.ctx).WithValues("member", m.Name, "kind", kind)
	if err := m.cache.RemoveInformer(m.ctx, newObject(kind)); err != nil {
		log.Error(err, "Ending the watch of a kind that the member does not serve")
	}
	for _, forget := range []func() error{m.mapper.reset, m.resetClient} {
		if err := forget(); err != nil {
			log.Error(err, "Resetting the resource mapping of a kind that the member does not serve")
		}
	}
	log.Info("Ended the watch of a kind that the member does not serve")
}
