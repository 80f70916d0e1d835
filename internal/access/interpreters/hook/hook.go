// Package hook sends requests to interpreter webhooks over HTTPS, and explains failures.
//
// Invariants:
//
//   - A webhook that hangs occupies at most 8 callers for 1 second, and 3 callers for its timeout. Then
//     its calls are paused: first those for the objects of this namespace, and those for all objects
//     once it hung for 3 namespaces. Calls of other webhooks are not delayed.
//   - A connection is used only if the server proves its identity with the CA bundle of the webhook.
//     Redirects are not followed.
//   - Time, size and number of everything that a server controls have limits.
//   - An error names the address, the cause and the remedy. The same cause has the same text, so that
//     a condition with this text does not change with each call.
package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/lru"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

const (
	// maxCalls is the maximum number of calls of one webhook at a time.
	maxCalls = 8
	// maxWait is the time that a further call waits for the end of another call.
	maxWait = 100 * time.Millisecond
	// maxPatience is the time after which a call is slow.
	maxPatience = time.Second
	// maxSlowCalls is the maximum number of slow calls of one webhook at a time. It is less than the
	// usual number of workers of a controller, so that a webhook that hangs does not occupy all of them
	// until its timeout.
	maxSlowCalls = 3
	// maxEndpoints limits the webhooks whose state is kept. The state of the webhook that was not
	// called for the longest time is dropped first.
	maxEndpoints = 1000
)

// Options configure a Caller.
type Options struct {
	// Services returns a Service of the control plane. The API errors NotFound and Forbidden mean that
	// the Service is unknown: it is then called by its DNS name. nil means that all are unknown.
	Services func(ctx context.Context, namespace, name string) (*corev1.Service, error)
	// Now returns the current time. nil means the system clock.
	Now func() time.Time
	// Dial opens a network connection. nil means the network of this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Caller calls webhooks. It is safe for concurrent use.
type Caller struct {
	options    Options
	transports *transports

	// mu guards endpoints, the state of each webhook by its ID.
	mu        sync.Mutex
	endpoints *lru.Cache
}

// New returns a Caller.
func New(o Options) *Caller {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: maxDial}).DialContext
	}
	return &Caller{options: o, transports: newTransports(o.Dial), endpoints: lru.New(maxEndpoints)}
}

// CloseIdleConnections closes the connections that no call uses. The Caller stays usable.
func (c *Caller) CloseIdleConnections() { c.transports.closeIdle() }

// Call implements webhook.Call.
func (c *Caller) Call(ctx context.Context, hook *webhook.Hook,
	request *configv1alpha1.ResourceInterpreterContext) (*configv1alpha1.ResourceInterpreterContext, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	called, namespace := c.endpoint(hook), namespaceOf(request)
	if err := called.begin(ctx); err != nil {
		// During the trial after a pause, other calls fail with the text of the pause. The condition of a
		// binding would change with each trial otherwise.
		return nil, cmp.Or(called.breaker.Paused(namespace, c.options.Now()), err)
	}
	defer called.end()
	var response *configv1alpha1.ResourceInterpreterContext
	err = called.breaker.Do(namespace, c.options.Now, func() (interpreter.CallOutcome, error) {
		patient, done := called.withPatience(ctx)
		defer done()
		var err error
		response, err = called.call(patient, body)
		return callOutcome(patient, err), err
	})
	return response, err
}

// namespaceOf returns the namespace of the object of a request. Calls are paused for each namespace, so
// that the objects of one user do not pause the calls for those of others.
func namespaceOf(request *configv1alpha1.ResourceInterpreterContext) string {
	if request.Request == nil {
		return ""
	}
	return request.Request.Namespace
}

// callOutcome returns what a call with the given context says about the deadline of the webhook.
func callOutcome(ctx context.Context, err error) interpreter.CallOutcome {
	switch {
	case isDeadline(err):
		return interpreter.CallExceededLimits
	case ctx.Err() != nil:
		return interpreter.CallUnfinished
	default:
		return interpreter.CallWithinLimits
	}
}

// endpoint returns the state of a webhook's calls. The state is reset if the address, the CA bundle or the
// timeout of the webhook has changed.
func (c *Caller) endpoint(hook *webhook.Hook) *endpoint {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.endpoints.Get(hook.ID); ok && found.(*endpoint).hook.CallsLike(hook) {
		return found.(*endpoint)
	}
	added := &endpoint{
		caller: c, hook: hook, slots: make(chan struct{}, maxCalls), slow: make(chan struct{}, maxSlowCalls),
		location: &location{config: hook.Client, services: c.options.Services, now: c.options.Now},
	}
	c.endpoints.Add(hook.ID, added)
	return added
}

// endpoint is one webhook with the state of its calls.
type endpoint struct {
	caller  *Caller
	hook    *webhook.Hook
	breaker interpreter.Breaker
	// slots has an item for each call that runs, and slow for each slow call.
	slots, slow chan struct{}
	location    *location
}

// begin waits until a call may run.
func (e *endpoint) begin(ctx context.Context) error {
	if len(e.slow) == cap(e.slow) {
		return fmt.Errorf("%s: %w", e.location, errSlow)
	}
	select {
	case e.slots <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for other calls of the webhook: %w", context.Cause(ctx))
	case <-timer.C:
		return fmt.Errorf("%s: %w", e.location, errFull)
	}
}

func (e *endpoint) end() { <-e.slots }

// The errors of calls that end or do not begin because of other calls. They say nothing about the object,
// so that its condition does not change.
var (
	errSlow = &interpreter.BusyError{Text: fmt.Sprintf(
		"the webhook is slow, and %d other calls wait for its response: make the webhook faster, or wait until a call ends", maxSlowCalls)}
	errFull = &interpreter.BusyError{Text: fmt.Sprintf("%d calls of the webhook run already: make the webhook faster, or wait until its calls end", maxCalls)}
)

// withPatience returns a context for a call. If the call becomes slow while maxSlowCalls others are
// slow, the context ends with errSlow. done must be called at the end of the call.
func (e *endpoint) withPatience(ctx context.Context) (patient context.Context, done func()) {
	patient, cancel := context.WithCancelCause(ctx)
	var mu sync.Mutex
	var isSlow, isDone bool
	timer := time.AfterFunc(min(maxPatience, e.hook.Timeout/2), func() {
		mu.Lock()
		defer mu.Unlock()
		if isDone {
			return
		}
		select {
		case e.slow <- struct{}{}:
			isSlow = true
		default:
			cancel(errSlow)
		}
	})
	return patient, func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		if isSlow {
			<-e.slow
		}
		isDone = true
		cancel(nil)
	}
}
