package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestPriorityTakesPrecedenceOverUrgency(t *testing.T) {
	s := &scheduler{options: Options{PriorityScheduling: true}}
	place := func(priority int32, u urgency) int {
		bound := &workv1alpha2.ResourceBinding{}
		bound.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
		return *s.priority(bound, u)
	}
	for _, low := range []int32{-1_000_000_000, -1, 0, 1, 1_000_000_000} {
		if one, other := place(low, urgencyLive), place(low+1, urgencyBackground); one >= other {
			t.Errorf("a live change with priority %d is at %d, and background work with %d at %d", low, one, low+1, other)
		}
		if one, other := place(low, urgencyBackground), place(low, urgencyLive); one >= other {
			t.Errorf("background work of priority %d is at %d, and a live change at %d", low, one, other)
		}
	}
}

func TestFailureBackoffDelays(t *testing.T) {
	cases := map[string]struct {
		byPriority bool
		class      retryMode
		want       []time.Duration
	}{
		"doubling from one second to ten": {true, retryWithBackoff, []time.Duration{
			time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}},
		"five minutes without capacity":        {true, retryWhenCapacity, []time.Duration{5 * time.Minute, 5 * time.Minute}},
		"the same without priority scheduling": {false, retryWhenCapacity, []time.Duration{time.Second, 2 * time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.PriorityScheduling = tc.byPriority
			b := newFailureBackoff(o)
			for try, want := range tc.want {
				if got := b.recordFailure(requestFor("a"), tc.class); got != want {
					t.Errorf("failure %d: delay %s, want %s", try+1, got, want)
				}
			}
			b.reset(requestFor("a"))
			if got := b.recordFailure(requestFor("a"), tc.class); got != tc.want[0] {
				t.Errorf("after a success: delay %s, want %s", got, tc.want[0])
			}
		})
	}
}

func TestFailureBackoffCountsWaitingBindings(t *testing.T) {
	b := newFailureBackoff(DefaultOptions())
	now := noon.Time
	b.now = func() time.Time { return now }
	b.recordFailure(requestFor("a"), retryWithBackoff)
	b.recordFailure(requestFor("b"), retryWhenCapacity)
	if b.count(false) != 1 || b.count(true) != 1 {
		t.Errorf("%d back off, %d wait for capacity", b.count(false), b.count(true))
	}
	if diff := cmp.Diff([]request{requestFor("b")}, b.waitingForCapacity(), cmp.AllowUnexported(request{})); diff != "" {
		t.Error(diff)
	}
	now = now.Add(2 * time.Second)
	if b.count(false) != 0 || b.count(true) != 1 {
		t.Errorf("later %d back off, %d wait for capacity", b.count(false), b.count(true))
	}
	b.recordFailure(requestFor("b"), retryWithBackoff)
	if len(b.waitingForCapacity()) != 0 {
		t.Error("what failed otherwise still waits for capacity")
	}
}

func ofPriority(priority int32) func(*workv1alpha2.ResourceBinding) {
	return func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.SchedulePriority = &workv1alpha2.SchedulePriority{Priority: priority}
	}
}

func TestQueueOrder(t *testing.T) {
	s := &scheduler{options: DefaultOptions()}
	queue := priorityqueue.New(t.Name(), func(o *priorityqueue.Opts[request]) {
		o.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[request](time.Second, time.Second)
	})
	defer queue.ShutDown()
	push := func(name string, u urgency, change ...func(*workv1alpha2.ResourceBinding)) {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: s.priority(newBinding(change...), u)}, requestFor(name))
	}
	push("unset at start", urgencyBackground)
	push("negative", urgencyLive, ofPriority(-1))
	push("unset", urgencyLive)
	push("zero", urgencyLive, ofPriority(0))
	push("high at start", urgencyBackground, ofPriority(10))
	push("high", urgencyLive, ofPriority(10))
	push("highest", urgencyBackground, ofPriority(1000000000))
	var got []string
	for range 7 {
		r, _, _ := queue.GetWithPriority()
		got = append(got, r.Name)
		queue.Done(r)
	}
	want := []string{"highest", "high", "high at start", "unset", "zero", "unset at start", "negative"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrioritySchedulingDisabled(t *testing.T) {
	s := &scheduler{}
	if got := *s.priority(newBinding(ofPriority(7)), urgencyLive); got != 0 {
		t.Errorf("priority %d", got)
	}
}
