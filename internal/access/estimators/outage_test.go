package estimators

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/test/bufconn"

	"karmada.io/karmada/internal/domain/capacity"
)

// connectInMemory makes the pool connect to a server in memory, so that the time of a test is the
// fake time of synctest. before is called before each connection.
func (p *testPool) connectInMemory(t *testing.T, s *server, before func(ctx context.Context) error) {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	serve(t, listener, s)
	p.dialAddress = func(ctx context.Context, _ string) (net.Conn, error) {
		if err := before(ctx); err != nil {
			return nil, err
		}
		return listener.DialContext(ctx)
	}
}

func immediately(context.Context) error { return nil }

// takes returns how long an estimate takes, and its text.
func (p *testPool) takes(t *testing.T) string {
	t.Helper()
	started := time.Now()
	text := p.limits(t, webDemand(), "m1")[0]
	return fmt.Sprintf("%s: %s", time.Since(started), text)
}

// The first request waits until its deadline. Later ones do not wait, until an attempt in the
// background receives a response.
func TestHangingEstimatorCostsOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTestPool(t, nil, serviceFor("m1", "127.0.0.1:1"))
		s := hanging()
		pool.connectInMemory(t, s, immediately)
		const failed = "unknown; remote: no response within "
		steps := []struct {
			name string
			wait time.Duration
			want string
		}{
			{"the first request", 0, "3s: " + failed + "3s"},
			{"during the first attempt", 0, "0s: " + failed + "3s"},
			{"after the first attempt", 4 * time.Second, "0s: " + failed + "5s"},
			{"during the second attempt", 2 * time.Second, "0s: " + failed + "5s"},
		}
		for _, step := range steps {
			<-time.After(step.wait)
			if got := pool.takes(t); got != step.want {
				t.Errorf("%s: %s, want %s", step.name, got, step.want)
			}
			synctest.Wait() // the result may arrive before the pool records the failure
		}
		s.become(answering(6))
		<-time.After(time.Minute)
		synctest.Wait()
		if got := pool.takes(t); got != "0s: 6 (remote)" {
			t.Errorf("the estimator answers again: %s", got)
		}
		pool.Close()
	})
}

// An estimator with an open connection begins to hang while several bindings are scheduled.
func TestEstimatorThatBeginsToHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTestPool(t, nil, serviceFor("m1", "127.0.0.1:1"))
		s := answering(6)
		pool.connectInMemory(t, s, immediately)
		if got := pool.takes(t); got != "0s: 6 (remote)" {
			t.Errorf("before: %s", got)
		}
		s.become(hanging())
		var requests sync.WaitGroup
		for range 4 {
			requests.Go(func() {
				if got := pool.takes(t); got != "3s: unknown; remote: no response within 3s" {
					t.Errorf("at the same time: %s", got)
				}
			})
		}
		requests.Wait()
		synctest.Wait()
		if failures := pool.clusters["m1"].failures; failures != 1 {
			t.Errorf("%d failures are counted, want 1", failures)
		}
		if got := pool.takes(t); got != "0s: unknown; remote: no response within 3s" {
			t.Errorf("after: %s", got)
		}
		if pool.gauge(t, "m1") != 1 {
			t.Error("the gauge does not show the failure")
		}
		pool.Close()
	})
}

// Bindings are scheduled each second for ten minutes. The attempts to reach the estimator are
// separated by the exponential backoff.
func TestAttemptsAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTestPool(t, nil, serviceFor("m1", "127.0.0.1:1"))
		attempts := 0
		pool.connectInMemory(t, answering(6), func(ctx context.Context) error {
			attempts++
			<-ctx.Done() // as if a firewall drops the packets
			return ctx.Err()
		})
		waited := time.Duration(0)
		for range 600 {
			started := time.Now()
			pool.takes(t)
			waited += time.Since(started)
			<-time.After(time.Second)
		}
		if waited != timeout || attempts < 15 || attempts > 25 {
			t.Errorf("bindings waited %s, want %s; %d attempts", waited, timeout, attempts)
		}
		if diff := cmp.Diff("0s: unknown; remote: connecting to 127.0.0.1:1: no response within 5s", pool.takes(t)); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		pool.Close()
	})
}

func TestUnschedulableReplicasOfHangingEstimator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTestPool(t, nil, serviceFor("m1", "127.0.0.1:1"))
		pool.connectInMemory(t, hanging(), immediately)
		started := time.Now()
		got := pool.UnschedulableReplicas(t.Context(), webDemand().Workload, time.Minute, []string{"m1"})
		if took := time.Since(started); took != timeout || len(got) != 1 || got[0].Err == nil || got[0].Err.Error() != "no response within 3s" {
			t.Errorf("after %s: %+v", took, got)
		}
		pool.Close()
	})
}

// A caller that ends its request does not make the estimator unavailable.
func TestCanceledRequestIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTestPool(t, nil, serviceFor("m1", "127.0.0.1:1"))
		s := answering(6)
		pool.connectInMemory(t, s, immediately)
		pool.takes(t)
		s.become(hanging())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if got := pool.UnschedulableReplicas(ctx, webDemand().Workload, time.Minute, []string{"m1"}); got[0].Err == nil {
			t.Errorf("canceled: %+v", got)
		}
		s.become(answering(7))
		if got := pool.takes(t); got != "0s: 7 (remote)" {
			t.Errorf("after: %s", got)
		}
		pool.Close()
	})
}

func TestRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newTestPool(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		running := 0
		var mu sync.Mutex
		visited := pool.forEach(ctx, maxRequests+10, func(int) {
			mu.Lock()
			running++
			mu.Unlock()
			<-ctx.Done()
		})
		if running != maxRequests || visited != maxRequests {
			t.Errorf("%d requests run, %d were started, want %d", running, visited, maxRequests)
		}
		answers := pool.UnschedulableReplicas(ctx, webDemand().Workload, time.Minute, []string{"m1", "m2"})
		for _, answer := range answers {
			if answer.Err == nil || answer.Count != 0 {
				t.Errorf("a cluster that was not asked: %+v", answer)
			}
		}
		if len(answers) != 2 || capacity.Unknown >= 0 {
			t.Errorf("answers %+v", answers)
		}
		pool.Close()
	})
}
