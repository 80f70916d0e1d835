package member

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	offered "karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/served"
)

const (
	// absencePatience is how long discovery must say that a kind is absent before its
	// watch ends.
	absencePatience = 5 * time.Second
	// firstReview and lastReview are the shortest and the longest pause between two
	// questions whether a member serves a kind.
	firstReview, lastReview = time.Second, 10 * time.Second
)

// kinds are the kinds that are watched in a member, and those whose watch ended
// because the member does not serve them.
type kinds struct {
	mu      sync.Mutex
	watched map[schema.GroupVersionKind]*kindWatch
	// reviewing is true while a goroutine asks for kinds in doubt.
	reviewing bool
	reviews   sync.WaitGroup
	// patience and pause are the times above, which tests shorten.
	patience, pause time.Duration
}

// kindWatch is the watch of one kind.
type kindWatch struct {
	// informer is nil after the watch ended.
	informer cache.Informer
	state    served.Watch
	// doubted is true from a list that was not found until the kind is seen served.
	doubted bool
	// confirmed is true if the kind was served when that was asked last.
	confirmed bool
	// denial is why the member did not let the kind be watched, at deniedAt.
	denial   error
	deniedAt time.Time
	// asked is the time of the last question, pause the time to the next.
	asked time.Time
	pause time.Duration
}

func newKinds() kinds {
	return kinds{watched: map[schema.GroupVersionKind]*kindWatch{}, patience: absencePatience, pause: firstReview}
}

// shouldAsk reports whether to ask now if a kind whose watch ended is served again.
// Many Works may want the kind at once.
func (k *kinds) shouldAsk(kind schema.GroupVersionKind, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.watched[kind]
	return known != nil && known.state.Ended && now.Sub(known.asked) >= k.pause
}

// due returns the kinds to ask for now. No kind is in doubt if left is false; then the
// next doubt begins another review.
func (k *kinds) due(now time.Time) (due []schema.GroupVersionKind, left bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, known := range k.watched {
		if !known.doubted && !known.state.Ended {
			continue
		}
		left = true
		if now.Sub(known.asked) >= known.pause {
			due = append(due, kind)
		}
	}
	k.reviewing = left
	return due, left
}

// onWatchError is called when the list or watch of a kind fails. "Not found" may mean
// that the kind is gone: discovery decides. Other errors say nothing about the kind.
func (m *Member) onWatchError(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if apierrors.IsForbidden(err) && m.deny(reflector.TypeDescription(), err) {
		return
	}
	if !apierrors.IsNotFound(err) || !m.doubt(reflector.TypeDescription()) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// doubt has discovery asked for a kind. It reports whether that explains the failure:
// the kind is watched, and discovery has not said yet that it is served.
func (m *Member) doubt(description string) bool {
	k := &m.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, known := range k.watched {
		if kind.String() != description {
			continue
		}
		if !known.doubted {
			known.doubted, known.pause, known.asked = true, k.pause, time.Now()
		}
		if !k.reviewing && m.ctx.Err() == nil {
			k.reviewing = true
			k.reviews.Go(m.reviewDoubted)
		}
		return !known.confirmed
	}
	return false
}

// reviewDoubted asks for kinds in doubt until there are none.
func (m *Member) reviewDoubted() {
	ticker := time.NewTicker(m.kinds.pause)
	defer ticker.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-ticker.C:
		}
		due, left := m.kinds.due(time.Now())
		if !left {
			return
		}
		for _, kind := range due {
			m.review(kind)
		}
	}
}

// review asks whether the member serves a kind, and ends its watch or begins it again.
func (m *Member) review(kind schema.GroupVersionKind) {
	answer, err := offered.Ask(m.discovery, kind)
	if err != nil {
		klog.FromContext(m.ctx).V(2).Info("Cannot tell whether the member serves a kind", "member", m.Name, "kind", kind, "cause", err)
	}
	if m.conclude(kind, answer) {
		klog.FromContext(m.ctx).Info("Watches a kind that the member serves again", "member", m.Name, "kind", kind)
		m.returned(kind)
	}
}

// conclude does what follows from an answer, and reports whether the watch of the kind
// began again.
func (m *Member) conclude(kind schema.GroupVersionKind, answer served.Answer) (began bool) {
	k := &m.kinds
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.watched[kind]
	if known == nil || m.ctx.Err() != nil {
		return false
	}
	known.asked, known.pause = time.Now(), min(2*known.pause, lastReview)
	before := known.state
	var step served.Step
	known.state, step = before.Next(answer, known.asked, k.patience)
	known.confirmed = answer == served.Served
	known.doubted = known.doubted && !known.confirmed
	switch step {
	case served.End:
		m.end(kind, known)
	case served.Begin:
		informer, err := m.inform(m.ctx, kind)
		if err != nil {
			// The answers for all kinds and for a group version differ for a moment.
			klog.FromContext(m.ctx).V(2).Info("Cannot watch a kind yet that the member serves again", "member", m.Name, "kind", kind, "cause", err)
			known.state = before
			return false
		}
		known.informer = informer
		return true
	}
	return false
}

// end ends the watch of a kind. Nobody is notified: that a kind is not served says
// nothing about its objects.
func (m *Member) end(kind schema.GroupVersionKind, known *kindWatch) {
	known.informer, known.pause = nil, m.kinds.pause
	log := klog.FromContext(m.ctx).WithValues("member", m.Name, "kind", kind)
	if err := m.cache.RemoveInformer(m.ctx, objectOf(kind)); err != nil {
		log.Error(err, "Ending the watch of a kind that the member does not serve")
	}
	for _, forget := range []func() error{m.mapper.forget, m.renewClient} {
		if err := forget(); err != nil {
			log.Error(err, "Forgetting the resource of a kind that the member does not serve")
		}
	}
	log.Info("Ended the watch of a kind that the member does not serve")
}
