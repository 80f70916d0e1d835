package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

// memoryNetwork connects clients with servers by their host names, within one synctest bubble.
type memoryNetwork map[string]memoryListener

func (m memoryNetwork) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	select {
	case m[host].connections <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type memoryListener struct {
	connections chan net.Conn
	closed      chan struct{}
	close       func()
}

func newMemoryListener() memoryListener {
	closed := make(chan struct{})
	return memoryListener{connections: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (m memoryListener) Accept() (net.Conn, error) {
	select {
	case accepted := <-m.connections:
		return accepted, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m memoryListener) Close() error {
	m.close()
	return nil
}

func (m memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// bubble has the webhooks slow and fast, served with TLS, within one synctest bubble.
type bubble struct {
	*testing.T
	caller     *Caller
	slow, fast *webhook.Hook
	// hangs reports whether slow does not respond.
	hangs atomic.Bool
	// requests is the number of requests that slow received.
	requests atomic.Int32
}

func inBubble(t *testing.T, test func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{T: t}
		b.hangs.Store(true)
		connected := memoryNetwork{}
		certificate := newCertificate(t, time.Now().Add(240*time.Hour), "slow", "fast")
		start := func(host string, handler http.HandlerFunc) *webhook.Hook {
			connected[host] = newMemoryListener()
			server := httptest.NewUnstartedServer(handler)
			server.Listener.Close()
			server.Listener = connected[host]
			server.TLS = tlsConfig(certificate)
			server.Config.ErrorLog = discardLog()
			server.StartTLS()
			t.Cleanup(server.Close)
			hook := newHook("https://"+host+"/interpret", certificate.bundle)
			hook.ID = "example/" + host
			return hook
		}
		b.slow = start("slow", func(w http.ResponseWriter, r *http.Request) {
			b.requests.Add(1)
			// The server notices the end of the connection only after it has read the request.
			_, _ = io.Copy(io.Discard, r.Body)
			if b.hangs.Load() {
				<-r.Context().Done()
				return
			}
			answerHealthy(w, r)
		})
		b.fast = start("fast", answerHealthy)
		b.caller = New(Options{Dial: connected.dial})
		t.Cleanup(b.caller.CloseIdleConnections)
		test(b)
	})
}

// advance lets the time of a bubble pass.
func advance(duration time.Duration) { <-time.After(duration) }

// expect calls a webhook and checks the error and the time that the call takes in the bubble.
func (b *bubble) expect(hook *webhook.Hook, want string, takes time.Duration) {
	b.Helper()
	start := time.Now()
	_, err := call(b.Context(), b.caller, hook)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		b.Errorf("%s: err = %v, want %q", hook.ID, err, want)
	}
	if took := time.Since(start); took != takes {
		b.Errorf("%s: the call took %s, want %s", hook.ID, took, takes)
	}
}

// hang starts calls of the slow webhook, and returns a function that waits for their errors.
func (b *bubble) hang(calls int) (wait func() []error) {
	failures := make([]error, calls)
	var running sync.WaitGroup
	for i := range calls {
		running.Go(func() { _, failures[i] = call(b.Context(), b.caller, b.slow) })
	}
	synctest.Wait()
	return func() []error {
		running.Wait()
		return failures
	}
}

const tooSlow = "https://slow/interpret: the webhook is slow, and 3 other calls wait for its response: make the webhook faster, or wait until a call ends"

const noAnswer = "https://slow/interpret: no response within 10s: make the webhook faster, or raise its timeoutSeconds (up to 30). After this, calls of the webhook are paused for up to 1 minute"

func TestHangingWebhookDelaysNoOtherWebhook(t *testing.T) {
	inBubble(t, func(b *bubble) {
		start := time.Now()
		wait := b.hang(maxCalls)
		for range 50 {
			b.expect(b.fast, "", 0)
		}
		b.expect(b.slow, "https://slow/interpret: 8 calls of the webhook run already: make the webhook faster", maxWait)
		texts := map[string]int{}
		for _, err := range wait() {
			texts[fmt.Sprint(err)]++
			if interpreter.IsBusy(err) != (err != nil && err.Error() == tooSlow) {
				b.Errorf("busy: %t for %v", interpreter.IsBusy(err), err)
			}
		}
		if diff := cmp.Diff(map[string]int{noAnswer: maxSlowCalls, tooSlow: maxCalls - maxSlowCalls}, texts); diff != "" {
			b.Errorf("errors (-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != b.slow.Timeout {
			b.Errorf("the slowest call took %s, want %s", took, b.slow.Timeout)
		}
		if b.requests.Load() != maxCalls {
			b.Errorf("%d requests, want %d", b.requests.Load(), maxCalls)
		}
		b.expect(b.fast, "", 0)
	})
}

// TestHangingWebhookFreesWorkers calls webhooks as a controller with five workers and a queue does.
func TestHangingWebhookFreesWorkers(t *testing.T) {
	inBubble(t, func(b *bubble) {
		start := time.Now()
		queue := make(chan *webhook.Hook, 1000)
		for range 100 {
			queue <- b.slow
		}
		for range 100 {
			queue <- b.fast
		}
		close(queue)
		var lastFast atomic.Int64
		var workers sync.WaitGroup
		for range 5 {
			workers.Go(func() {
				for hook := range queue {
					_, err := call(b.Context(), b.caller, hook)
					if hook == b.fast {
						lastFast.Store(int64(time.Since(start)))
					}
					if (err == nil) != (hook == b.fast) {
						b.Errorf("%s: err = %v", hook.ID, err)
					}
				}
			})
		}
		workers.Wait()
		if waited := time.Duration(lastFast.Load()); waited != maxPatience {
			b.Errorf("the calls of another webhook behind 100 hanging calls waited for %s, want %s", waited, maxPatience)
		}
	})
}

func TestSlowCallsAreLimited(t *testing.T) {
	inBubble(t, func(b *bubble) {
		wait := b.hang(maxSlowCalls - 1)
		advance(maxPatience)
		b.hangs.Store(false)
		b.expect(b.slow, "", 0)
		b.hangs.Store(true)
		waitForLast := b.hang(1)
		advance(2 * maxPatience)
		b.expect(b.slow, tooSlow, 0)
		b.hangs.Store(false)
		wait()
		waitForLast()
		advance(time.Minute)
		b.expect(b.slow, "", 0)
		for _, err := range b.hang(maxCalls)() {
			if err != nil {
				b.Error(err)
			}
		}
	})
}

func TestWebhookThatHungIsPaused(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.expect(b.slow, noAnswer, b.slow.Timeout)
		for range 3 {
			b.expect(b.slow, noAnswer, 0)
		}
		if b.requests.Load() != 1 {
			b.Errorf("%d requests during the pause", b.requests.Load()-1)
		}
		_, err := call(b.Context(), b.caller, b.slow)
		var paused *interpreter.PausedError
		if !errors.As(err, &paused) || err.Error() != noAnswer {
			b.Errorf("the error of a paused call is %v", err)
		}
		b.hangs.Store(false)
		advance(time.Second)
		b.expect(b.slow, "", 0)
		b.expect(b.slow, "", 0)
	})
}

// TestTrialKeepsText checks that the text of the calls does not change while the trial after a pause
// runs and is slow.
func TestTrialKeepsText(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.expect(b.slow, noAnswer, b.slow.Timeout)
		advance(time.Second)
		wait := b.hang(1)
		b.expect(b.slow, noAnswer, 0)
		advance(2 * maxPatience)
		b.expect(b.slow, noAnswer, 0)
		wait()
		b.expect(b.slow, noAnswer, 0)
	})
}

// TestPauseConcernsOneNamespace checks that the object of one user does not pause the calls for those of
// others, until the webhook hangs for several users.
func TestPauseConcernsOneNamespace(t *testing.T) {
	inBubble(t, func(b *bubble) {
		health := func(namespace, want string, takes time.Duration) {
			b.Helper()
			start := time.Now()
			_, err := b.caller.Call(b.Context(), b.slow, &configv1alpha1.ResourceInterpreterContext{
				Request: &configv1alpha1.ResourceInterpreterRequest{UID: "1", Namespace: namespace},
			})
			if took := time.Since(start); took != takes || (err == nil) != (want == "") || err != nil && err.Error() != want {
				b.Errorf("%s: error %v after %s, want %q after %s", namespace, err, took, want, takes)
			}
		}
		health("a", noAnswer, b.slow.Timeout)
		b.hangs.Store(false)
		health("a", noAnswer, 0)
		health("b", "", 0)
		b.hangs.Store(true)
		health("b", noAnswer, b.slow.Timeout)
		health("c", noAnswer, b.slow.Timeout)
		health("d", noAnswer, 0)
	})
}

func TestChangedConfigurationEndsPause(t *testing.T) {
	inBubble(t, func(b *bubble) {
		b.expect(b.slow, noAnswer, b.slow.Timeout)
		b.hangs.Store(false)
		same := *b.slow
		b.expect(&same, noAnswer, 0)
		changed := *b.slow
		changed.Timeout = time.Second
		b.expect(&changed, "", 0)
	})
}

func TestCanceledCallCausesNoPause(t *testing.T) {
	inBubble(t, func(b *bubble) {
		ctx, cancel := context.WithCancelCause(b.Context())
		var err error
		var running sync.WaitGroup
		running.Go(func() { _, err = call(ctx, b.caller, b.slow) })
		synctest.Wait()
		cancel(errors.New("the process ends"))
		running.Wait()
		if err == nil || !strings.HasSuffix(err.Error(), "https://slow/interpret: the process ends") {
			b.Errorf("err = %v", err)
		}
		b.hangs.Store(false)
		b.expect(b.slow, "", 0)
	})
}

func TestDeadlineOfCallerCausesPause(t *testing.T) {
	inBubble(t, func(b *bubble) {
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		if _, err := call(ctx, b.caller, b.slow); err == nil || !strings.Contains(err.Error(), "no response before the deadline of the caller") {
			b.Errorf("err = %v", err)
		}
		b.expect(b.slow, "no response before the deadline of the caller", 0)
	})
}

func TestWaitingCallEndsWithItsContext(t *testing.T) {
	inBubble(t, func(b *bubble) {
		wait := b.hang(maxCalls)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := call(ctx, b.caller, b.slow); !errors.Is(err, context.Canceled) {
			b.Errorf("err = %v", err)
		}
		wait()
	})
}

// TestAnswerInPieces checks that the timeout includes the time in which the body arrives.
func TestAnswerInPieces(t *testing.T) {
	inBubble(t, func(b *bubble) {
		connected := memoryNetwork{"drip": newMemoryListener()}
		certificate := newCertificate(b.T, time.Now().Add(time.Hour), "drip")
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				if http.NewResponseController(w).Flush() != nil {
					return
				}
				advance(time.Second)
			}
		}))
		server.Listener.Close()
		server.Listener, server.TLS = connected["drip"], tlsConfig(certificate)
		server.StartTLS()
		defer server.Close()
		b.caller = New(Options{Dial: connected.dial})
		defer b.caller.CloseIdleConnections()
		b.expect(newHook("https://drip", certificate.bundle), "no response within 10s", 10*time.Second)
	})
}

// TestServerThatAcceptsNoConnection checks that a connection that does not open has its own text.
func TestServerThatAcceptsNoConnection(t *testing.T) {
	inBubble(t, func(b *bubble) {
		listener := newMemoryListener()
		b.caller = New(Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, maxDial)
			defer cancel()
			return memoryNetwork{"slow": listener}.dial(ctx, network, address)
		}})
		b.slow.Timeout = 3 * time.Second
		b.expect(b.slow, "https://slow/interpret: no connection within 3s: check that the address is right, and that no firewall drops packets", 3*time.Second)
		b.expect(b.slow, "no connection within 3s", 0)
		// The transport gives up a connection later than the call.
		advance(maxDial)
	})
}
