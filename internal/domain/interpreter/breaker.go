package interpreter

import (
	"maps"
	"sync"
	"time"
)

// maxPausedKeys is the number of paused keys at which all keys are paused.
const maxPausedKeys = 3

// Breaker permits all calls until one of them exceeds a limit. Then it refuses calls with the same key,
// such as a namespace, during a pause of 1 second. So the objects of one user cannot pause the calls
// for the objects of others. After the pause, it permits one trial. If the trial ends within its
// limits, the breaker permits all calls again. If not, the next pause is twice as long, up to 1 minute.
//
// If the calls for 3 keys are paused, the script or webhook is at fault and not an object: then the
// calls for all keys are paused in the same way. A key without a trial for 5 minutes after its pause
// does not count: its objects are probably deleted.
//
// The zero value permits all calls. A Breaker is safe for concurrent use.
//
// A Breaker pauses the calls of one script or one webhook that does not end within its limits, so
// that these calls do not occupy the workers that all kinds share.
type Breaker struct {
	mu  sync.Mutex
	all circuit
	// paused has the keys whose last trial exceeded a limit, except those that are forgotten. Their
	// number grows only with trials, because calls for further keys are refused soon.
	paused map[string]*circuit
}

// CallOutcome tells whether a call ended within its limits.
type CallOutcome int

const (
	// CallUnfinished means that the call ended too early: its caller canceled it, or it panicked.
	CallUnfinished CallOutcome = iota
	// CallWithinLimits means that the call ended within its limits. It can have failed for another reason.
	CallWithinLimits
	// CallExceededLimits means that the call exceeded a limit. The error of the call says which one.
	CallExceededLimits
)

// PausedError means that a call was refused. Its text is that of the cause.
type PausedError struct {
	// Cause is the error of the call that began the pause.
	Cause error
}

func (p *PausedError) Error() string { return p.Cause.Error() }

func (p *PausedError) Unwrap() error { return p.Cause }

// Do calls the function and returns its error, or refuses the call with a PausedError. The error of
// the call that began a pause is returned until a trial ends within its limits, also for a trial that
// exceeds a limit at another place. So the message of a condition does not change with each trial.
func (b *Breaker) Do(key string, now func() time.Time, call func() (CallOutcome, error)) (err error) {
	began, err := b.begin(key, now())
	if err != nil {
		return err
	}
	outcome := CallUnfinished
	defer func() { b.end(began, outcome, now(), &err) }()
	outcome, err = call()
	return err
}

// Paused returns the PausedError with which Do would refuse a call now, or nil.
func (b *Breaker) Paused(key string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal(key, now)
}

// attempt is a permitted call.
type attempt struct {
	key                   string
	isTrialOfAll, isTrial bool
}

func (b *Breaker) begin(key string, now time.Time) (attempt, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refusal(key, now); err != nil {
		return attempt{}, err
	}
	return attempt{key: key, isTrialOfAll: b.all.begin(), isTrial: b.paused[key].begin()}, nil
}

// refusal requires the lock. The cause of the key has precedence, so that its text does not change
// if the calls for all keys are paused too.
func (b *Breaker) refusal(key string, now time.Time) error {
	ofKey := b.paused[key]
	switch {
	case !ofKey.refuses(now) && !b.all.refuses(now):
		return nil
	case ofKey != nil:
		return &PausedError{Cause: ofKey.cause}
	default:
		return &PausedError{Cause: b.all.cause}
	}
}

// end records the outcome of a call that ended now. If the call exceeded a limit, err becomes the
// error of the call that began the pause.
func (b *Breaker) end(ended attempt, outcome CallOutcome, now time.Time, err *error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch outcome {
	case CallUnfinished:
		if ended.isTrial {
			b.paused[ended.key].trialRuns = false
		}
		if ended.isTrialOfAll {
			b.all.trialRuns = false
		}
	case CallWithinLimits:
		if ended.isTrial {
			delete(b.paused, ended.key)
		}
		if ended.isTrialOfAll {
			b.all = circuit{}
		}
	case CallExceededLimits:
		maps.DeleteFunc(b.paused, func(_ string, ofKey *circuit) bool { return ofKey.isForgotten(now) })
		*err = b.pauseKey(ended, now, *err)
		if ended.isTrialOfAll || len(b.paused) >= maxPausedKeys && !b.all.isPaused() {
			b.all.startPause(now, *err)
		}
	}
}

// pauseKey pauses the calls for a key, and returns the error of the call that began the pause.
func (b *Breaker) pauseKey(ended attempt, now time.Time, exceeded error) (cause error) {
	if b.paused == nil {
		b.paused = map[string]*circuit{}
	}
	ofKey := b.paused[ended.key]
	if ofKey == nil {
		ofKey = &circuit{}
		b.paused[ended.key] = ofKey
	}
	// A call that began before the pause says nothing new.
	if ended.isTrial || !ofKey.isPaused() {
		ofKey.startPause(now, exceeded)
	}
	return ofKey.cause
}
