package loop

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pacer spreads the passes or writes for many keys over time. Each key waits at most once, and each
// method serves one kind of wait:
//
//   - CollectDelay collects the changes of one key in a window that grows with the load;
//   - TurnDelay makes a key wait until the Pacer's rate limit allows its write;
//   - ReserveTurn assigns a time to a key in advance.
//
// A Pacer is safe for concurrent use.
type Pacer[K comparable] struct {
	policy  PacingPolicy
	limiter *rate.Limiter

	mu   sync.Mutex
	load changeRate
	// waitingSince holds the keys that wait for their turn, and the times at which they began to
	// wait.
	waitingSince map[K]time.Time
}

// NewPacer returns a Pacer whose rate limit is perSecond, with a burst of the same size. 0 means
// that there is no rate limit.
func NewPacer[K comparable](policy PacingPolicy, perSecond int) *Pacer[K] {
	p := &Pacer[K]{policy: policy, limiter: rate.NewLimiter(rate.Inf, 0), waitingSince: map[K]time.Time{}}
	if perSecond > 0 {
		p.limiter = rate.NewLimiter(rate.Limit(perSecond), perSecond)
	}
	return p
}

// CollectDelay counts a change and returns how long the changes of its key are collected. The delay
// grows with the number of changes of all keys.
func (p *Pacer[K]) CollectDelay(window PacingWindow, now time.Time) time.Duration {
	return p.policy.WindowLength(window, p.RecordLoad(now))
}

// RecordLoad counts a change and returns the load.
func (p *Pacer[K]) RecordLoad(now time.Time) (changesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.load.record(now)
	return p.load.perSecond(now)
}

// Load returns the number of changes per second that were counted last.
func (p *Pacer[K]) Load(now time.Time) (changesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.load.perSecond(now)
}

// maxTurnPollDelay is the maximum delay after which a waiting key requests its turn again.
const maxTurnPollDelay = 30 * time.Second

// TurnDelay returns how long the write for a key must still be delayed. 0 means that the write is
// due now, and ends the wait of the key. The key waits since the given time, or since its first
// call if that was earlier. It waits for at least minDelay and then for the rate limit, but in
// total at most for the policy's MaxProgressDelay, because all waiting keys compete for the rate
// limit.
func (p *Pacer[K]) TurnDelay(key K, since time.Time, minDelay time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, ok := p.waitingSince[key]; ok && first.Before(since) {
		since = first
	}
	p.waitingSince[key] = since
	if remaining := since.Add(minDelay).Sub(now); remaining > 0 {
		return remaining
	}
	if remaining := since.Add(p.policy.MaxProgressDelay).Sub(now); remaining > 0 && !p.limiter.AllowN(now, 1) {
		return min(remaining, p.turnPollDelay())
	}
	delete(p.waitingSince, key)
	return 0
}

// turnPollDelay returns the delay after which a key that the rate limit rejected requests its turn
// again. It is the time in which all waiting keys can get their turn. An earlier attempt would
// usually fail, and an attempt costs more than the wait.
func (p *Pacer[K]) turnPollDelay() time.Duration {
	allTurns := time.Duration(float64(len(p.waitingSince)) / float64(p.limiter.Limit()) * float64(time.Second))
	return min(max(allTurns, p.policy.Settle), maxTurnPollDelay)
}

// ReserveTurn reserves a turn for a key and returns the delay until this turn. ok is false if the
// key already has a turn, so that keys whose state changes repeatedly do not accumulate turns.
func (p *Pacer[K]) ReserveTurn(key K, now time.Time) (delay time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, isWaiting := p.waitingSince[key]; isWaiting {
		return 0, false
	}
	p.waitingSince[key] = now
	return p.limiter.ReserveN(now, 1).DelayFrom(now), true
}

// EndWait ends the wait of a key whose write is done or not needed any more.
func (p *Pacer[K]) EndWait(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waitingSince, key)
}

// changeRate counts changes per second. In the zero value the count is 0. It is not safe for
// concurrent use.
type changeRate struct {
	second            int64
	current, previous int
}

// record counts one change.
func (r *changeRate) record(now time.Time) {
	r.rollOver(now)
	r.current++
}

// perSecond returns the larger of two counts: that of the last whole second and that of the current
// second.
func (r *changeRate) perSecond(now time.Time) int {
	r.rollOver(now)
	return max(r.current, r.previous)
}

// rollOver starts to count a new second if the current second is over.
func (r *changeRate) rollOver(now time.Time) {
	switch second := now.Unix(); second - r.second {
	case 0:
	case 1:
		r.second, r.previous, r.current = second, r.current, 0
	default:
		r.second, r.previous, r.current = second, 0, 0
	}
}
