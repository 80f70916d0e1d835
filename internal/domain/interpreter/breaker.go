package interpreter

import (
	"maps"
	"sync"
	"time"
)

// maxPausedKeys is the number of paused keys from which all keys are paused.
const maxPausedKeys = 3

// Breaker is a circuit breaker for the calls of a script or webhook. It pauses calls that exceed their
// limits, so that they do not occupy the workers that all kinds share.
//
// After a call has exceeded a limit, the Breaker rejects calls with the same key for 1 second. The key
// is a namespace, for example, so that one user's objects do not pause the calls for other users'
// objects. After the pause, it permits a single trial call. If the trial stays within its limits, all
// calls are permitted again. Otherwise, the next pause is twice as long, up to 1 minute.
//
// If the calls for 3 keys are paused, the script or webhook is at fault, not an object, and the calls
// for all keys are paused in the same way. A key without a trial within 5 minutes after its pause does
// not count, because its objects have probably been deleted.
//
// The zero value permits all calls. A Breaker is safe for concurrent use.
type Breaker struct {
	mu  sync.Mutex
	all circuit
	// paused holds the keys whose last call or trial exceeded a limit, except those that are forgotten.
	// Few keys are added after maxPausedKeys, because calls for further keys are then rejected.
	paused map[string]*circuit
}

// CallOutcome tells whether a call ended within its limits.
type CallOutcome int

const (
	// CallUnfinished means that the call ended too early: its caller canceled it, or it panicked.
	CallUnfinished CallOutcome = iota
	// CallWithinLimits means that the call ended within its limits, even if it failed for another reason.
	CallWithinLimits
	// CallExceededLimits means that the call exceeded a limit, which its error names.
	CallExceededLimits
)

// PausedError reports that a call was rejected during a pause. Its text is that of the cause.
type PausedError struct {
	// Cause is the error of the call that started the first pause.
	Cause error
}

func (p *PausedError) Error() string { return p.Cause.Error() }

func (p *PausedError) Unwrap() error { return p.Cause }

// Do calls the function and returns its error, or returns a *PausedError without calling it. Until a
// trial stays within its limits, all calls return the error that started the first pause, even if a
// trial exceeds another limit, so that condition messages do not change with each trial.
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

// Paused returns the *PausedError that Do would return now, or nil if it would permit the call.
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

// refusal returns the *PausedError for a call with the key, or nil. The caller must hold the lock. The
// key's cause takes precedence, so that the text does not change when all keys are paused too.
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

// end records the outcome of a call that ended now. If the call exceeded a limit, err is set to the
// error that started the first pause.
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

// pauseKey pauses the calls for the key, and returns the error that started the first pause.
func (b *Breaker) pauseKey(ended attempt, now time.Time, exceeded error) (cause error) {
	if b.paused == nil {
		b.paused = map[string]*circuit{}
	}
	ofKey := b.paused[ended.key]
	if ofKey == nil {
		ofKey = &circuit{}
		b.paused[ended.key] = ofKey
	}
	// A call that started before the pause does not extend it.
	if ended.isTrial || !ofKey.isPaused() {
		ofKey.startPause(now, exceeded)
	}
	return ofKey.cause
}
