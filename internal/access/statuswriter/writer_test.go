package statuswriter

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// countingStore is a store that counts the writes of statuses.
type countingStore struct {
	client.Client
	mu     sync.Mutex
	writes int
	wrote  chan struct{}
}

func newStore(t *testing.T, works ...client.Object) *countingStore {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := workv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &countingStore{wrote: make(chan struct{}, 100)}
	s.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(works...).WithStatusSubresource(works...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, object client.Object, o ...client.SubResourceUpdateOption,
		) error {
			err := c.SubResource(sub).Update(ctx, object, o...)
			s.mu.Lock()
			s.writes++
			s.mu.Unlock()
			s.wrote <- struct{}{}
			return err
		}}).Build()
	return s
}

func (s *countingStore) awaitWrite(t *testing.T) {
	t.Helper()
	select {
	case <-s.wrote:
	case <-time.After(time.Minute):
		t.Fatal("nothing was written within a minute")
	}
}

func startWriter(t *testing.T, s *countingStore, o Options) *Writer {
	t.Helper()
	w := NewWriter(s, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Start(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

func newWork() *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
}

func setApplied(status metav1.ConditionStatus) Change {
	return func(s *workv1alpha1.WorkStatus) {
		s.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, Reason: "R"}}
	}
}

func setHealth(health workv1alpha1.ResourceHealth) Change {
	return func(s *workv1alpha1.WorkStatus) { s.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health}} }
}

func TestChangesAreCoalesced(t *testing.T) {
	of := newWork()
	s := newStore(t, of)
	w := startWriter(t, s, Options{PromptDebounce: 20 * time.Millisecond, DeferredDebounce: time.Minute, MaxDelay: time.Minute, Workers: 2})
	w.Submit(of, ConditionPart(workv1alpha1.WorkApplied), Deferred, setApplied(metav1.ConditionTrue))
	w.Submit(of, ManifestStatusesPart, Deferred, setHealth(workv1alpha1.ResourceUnhealthy))
	w.Submit(of, ManifestStatusesPart, Prompt, setHealth(workv1alpha1.ResourceHealthy))
	s.awaitWrite(t)
	stored := &workv1alpha1.Work{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(of), stored); err != nil {
		t.Fatal(err)
	}
	want := workv1alpha1.WorkStatus{}
	setApplied(metav1.ConditionTrue)(&want)
	setHealth(workv1alpha1.ResourceHealthy)(&want)
	if diff := cmp.Diff(want, stored.Status); diff != "" {
		t.Error(diff)
	}
	if s.writes != 1 {
		t.Errorf("%d writes", s.writes)
	}
}

func TestImmediateChange(t *testing.T) {
	of := newWork()
	s := newStore(t, of)
	w := startWriter(t, s, Options{PromptDebounce: time.Hour, MaxDelay: time.Hour, Workers: 1})
	w.Submit(of, ConditionPart(workv1alpha1.WorkApplied), Immediate, setApplied(metav1.ConditionFalse))
	s.awaitWrite(t)
}

func TestDebounce(t *testing.T) {
	type step struct {
		after time.Duration
		part  Part
		pace  Urgency
		wait  time.Duration
	}
	cases := map[string][]step{
		"constant changes are written at the limit": {
			{0, ManifestStatusesPart, Prompt, time.Second},
			{900 * time.Millisecond, ManifestStatusesPart, Prompt, time.Second},
			{900 * time.Millisecond, ManifestStatusesPart, Prompt, 200 * time.Millisecond},
			{200 * time.Millisecond, ManifestStatusesPart, Prompt, 0},
		},
		"a deferred change waits for the longer debounce": {
			{0, ConditionPart(workv1alpha1.WorkApplied), Deferred, 1500 * time.Millisecond},
			{time.Second, ManifestStatusesPart, Deferred, time.Second},
		},
		"a deferred change is written with a more urgent one": {
			{0, ConditionPart(workv1alpha1.WorkApplied), Deferred, 1500 * time.Millisecond},
			{100 * time.Millisecond, ManifestStatusesPart, Prompt, time.Second},
			{100 * time.Millisecond, ConditionPart(workv1alpha1.WorkApplied), Immediate, 0},
		},
		"a less urgent change of the same part replaces it": {
			{0, ManifestStatusesPart, Prompt, time.Second},
			{100 * time.Millisecond, ManifestStatusesPart, Deferred, 1500 * time.Millisecond},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			of := newWork()
			w := NewWriter(newStore(t, of), Options{PromptDebounce: time.Second, DeferredDebounce: 1500 * time.Millisecond, MaxDelay: 2 * time.Second, Workers: 1})
			w.now = func() time.Time { return clock }
			for i, s := range steps {
				clock = clock.Add(s.after)
				w.Submit(of, s.part, s.pace, setHealth(workv1alpha1.ResourceUnknown))
				if _, wait := w.takePending(client.ObjectKeyFromObject(of)); wait != s.wait {
					t.Errorf("step %d: waits %s, want %s", i, wait, s.wait)
				}
			}
		})
	}
}

func TestDeliveriesDelayStatusWrites(t *testing.T) {
	start := time.Unix(1000, 0)
	tests := map[string]struct {
		deliveries int
		pace       Urgency
		age        time.Duration
		want       time.Duration
	}{
		"few deliveries do not delay a change":    {deliveries: 3, pace: Prompt, want: 80 * time.Millisecond},
		"many deliveries delay a change":          {deliveries: 4, pace: Prompt, want: busyPollInterval},
		"many deliveries delay a deferred change": {deliveries: 4, pace: Deferred, want: busyPollInterval},
		"a failure is not delayed":                {deliveries: 4, pace: Immediate, want: 0},
		"the delay is limited":                    {deliveries: 4, pace: Prompt, age: 4500 * time.Millisecond, want: 500 * time.Millisecond},
		"the delay is over":                       {deliveries: 4, pace: Prompt, age: 5 * time.Second, want: -3 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(nil, Options{
				PromptDebounce: 80 * time.Millisecond, DeferredDebounce: 250 * time.Millisecond, MaxDelay: 2 * time.Second, BusyDeliveriesPerSecond: 3, MaxBusyDelay: 5 * time.Second,
			})
			w.now = func() time.Time { return start }
			for range test.deliveries {
				w.deliveries.record(start)
			}
			entry := &pendingUpdate{changes: map[Part]partChange{ManifestStatusesPart: {urgency: test.pace}}, firstAt: start.Add(-test.age), lastAt: start}
			if got := w.remainingDelay(entry); got != test.want {
				t.Errorf("wait() = %s, want %s", got, test.want)
			}
		})
	}
}

func TestDeferredWritesAreRateLimited(t *testing.T) {
	start := time.Unix(1000, 0)
	key := client.ObjectKeyFromObject(newWork())
	for name, test := range map[string]struct {
		age  time.Duration
		want time.Duration
	}{
		"no token available":       {age: 3 * time.Second, want: 2 * time.Second},
		"waited for the maximum":   {age: maxDeferredDelay, want: 0},
		"waits for the first time": {age: 2 * time.Second, want: 2 * time.Second},
		"just below the maximum":   {age: maxDeferredDelay - 1, want: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(nil, Options{DeferredDebounce: 250 * time.Millisecond, MaxDelay: 2 * time.Second, BusyDeliveriesPerSecond: 3})
			w.now = func() time.Time { return start }
			w.deferredLimiter.AllowN(start, deferredWritesPerSecond)
			w.pending[key] = &pendingUpdate{
				changes: map[Part]partChange{ManifestStatusesPart: {urgency: Deferred}}, firstAt: start.Add(-test.age), lastAt: start.Add(-test.age),
			}
			if entry, wait := w.takePending(key); wait != test.want || (entry != nil) != (test.want == 0) {
				t.Errorf("take() = %v, %s, want to wait %s", entry, wait, test.want)
			}
		})
	}
}

func TestDeliveryRate(t *testing.T) {
	start := time.Unix(1000, 0)
	var d deliveryRate
	for range 5 {
		d.record(start)
	}
	for after, want := range map[time.Duration]int{0: 5, 999 * time.Millisecond: 5, time.Second: 5} {
		counted := d
		if got := counted.perSecond(start.Add(after)); got != want {
			t.Errorf("after %s perSecond() = %d, want %d", after, got, want)
		}
	}
	if got := d.perSecond(start.Add(2 * time.Second)); got != 0 {
		t.Errorf("after 2s perSecond() = %d, want 0", got)
	}
}

func TestReadYourWrites(t *testing.T) {
	of := newWork()
	of.ResourceVersion = "7"
	w := NewWriter(nil, DefaultOptions())
	last := of.DeepCopy()
	last.ResourceVersion = "9"
	w.lastWrites[client.ObjectKeyFromObject(of)] = lastWrite{work: last, at: w.now()}
	if got := w.Latest(of); got != last {
		t.Error("a cache that lags behind the last write is used")
	}
	newer := of.DeepCopy()
	newer.ResourceVersion = "10"
	if got := w.Latest(newer); got != newer {
		t.Error("a newer cache is ignored")
	}
	if len(w.lastWrites) != 0 {
		t.Error("a write that the cache shows is still kept")
	}
}

func TestLastWriteIsKeptUntilCacheSyncs(t *testing.T) {
	for name, gone := range map[string]bool{"cache shows the write": false, "Work is gone": true} {
		t.Run(name, func(t *testing.T) {
			of := newWork()
			key := client.ObjectKeyFromObject(of)
			s := newStore(t, of)
			w := NewWriter(s, DefaultOptions())
			w.cacheSyncDelay = 0
			update := &pendingUpdate{uid: "1", changes: map[Part]partChange{ConditionPart(workv1alpha1.WorkApplied): {Immediate, setApplied(metav1.ConditionTrue)}}}
			if err := w.write(t.Context(), key, update); err != nil {
				t.Fatal(err)
			}
			if len(w.lastWrites) != 1 || w.queue.Len() != 1 {
				t.Fatalf("%d kept, %d queued", len(w.lastWrites), w.queue.Len())
			}
			// The cache lags.
			w.lastWrites[key].work.ResourceVersion = "1" + w.lastWrites[key].work.ResourceVersion + "0"
			w.processNext(t.Context())
			if len(w.lastWrites) != 1 || w.queue.Len() != 1 {
				t.Fatalf("while the cache lags: %d kept, %d queued", len(w.lastWrites), w.queue.Len())
			}
			if gone {
				if err := s.Delete(t.Context(), of); err != nil {
					t.Fatal(err)
				}
			} else if err := s.Get(t.Context(), key, w.lastWrites[key].work); err != nil {
				t.Fatal(err)
			}
			w.processNext(t.Context())
			if len(w.lastWrites) != 0 || w.queue.Len() != 0 {
				t.Errorf("%d kept, %d queued", len(w.lastWrites), w.queue.Len())
			}
		})
	}
}

// After the restore of a backup a Work is older than its last write.
func TestLastWriteIsDroppedAfterRestore(t *testing.T) {
	tests := map[string]func(*testing.T, *Writer, *workv1alpha1.Work, *pendingUpdate){
		"by a conflict": func(t *testing.T, w *Writer, of *workv1alpha1.Work, update *pendingUpdate) {
			if err := w.write(t.Context(), client.ObjectKeyFromObject(of), update); !apierrors.IsConflict(err) {
				t.Fatalf("the write over a lost state: %v", err)
			}
			if err := w.write(t.Context(), client.ObjectKeyFromObject(of), update); err != nil {
				t.Error(err)
			}
		},
		"after a minute": func(t *testing.T, w *Writer, of *workv1alpha1.Work, _ *pendingUpdate) {
			at := time.Now().Add(maxLastWriteAge)
			w.now = func() time.Time { return at }
			if got := w.Latest(of); got != of || len(w.lastWrites) != 0 {
				t.Error("the stored state is ignored")
			}
		},
	}
	for name, forget := range tests {
		t.Run(name, func(t *testing.T) {
			of := newWork()
			s := newStore(t, of)
			key := client.ObjectKeyFromObject(of)
			if err := s.Get(t.Context(), key, of); err != nil {
				t.Fatal(err)
			}
			lost := of.DeepCopy()
			lost.ResourceVersion += "000"
			w := NewWriter(s, DefaultOptions())
			w.lastWrites[key] = lastWrite{work: lost, at: w.now()}
			forget(t, w, of, &pendingUpdate{uid: "1", changes: map[Part]partChange{ConditionPart(workv1alpha1.WorkApplied): {Immediate, setApplied(metav1.ConditionTrue)}}})
		})
	}
}

func TestChangeOfFormerWorkIsNotWritten(t *testing.T) {
	of := newWork()
	s := newStore(t, of)
	earlier := of.DeepCopy()
	earlier.UID = "0"
	w := NewWriter(s, DefaultOptions())
	if err := w.write(t.Context(), client.ObjectKeyFromObject(of), &pendingUpdate{uid: "0", changes: map[Part]partChange{ConditionPart(workv1alpha1.WorkApplied): {Immediate, setApplied(metav1.ConditionTrue)}}}); err != nil {
		t.Fatal(err)
	}
	if s.writes != 0 {
		t.Error("the change was written")
	}
}
