package loop

import (
	"context"
	"fmt"
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

func newWorkStore(t *testing.T, works ...client.Object) *countingStore {
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

func (c *countingStore) awaitWrite(t *testing.T) {
	t.Helper()
	select {
	case <-c.wrote:
	case <-time.After(time.Minute):
		t.Fatal("nothing was written within a minute")
	}
}

func startWriter(t *testing.T, s *countingStore, o StatusWriterOptions) *StatusWriter {
	t.Helper()
	w := NewStatusWriter(s, s, o)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Start(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return w
}

func newWork() *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
}

// window returns a window that does not depend on the load.
func window(length time.Duration) PacingWindow { return PacingWindow{Idle: length, Busy: length} }

func setApplied(status metav1.ConditionStatus) StatusChange {
	return func(s *workv1alpha1.WorkStatus) {
		s.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, Reason: "R"}}
	}
}

func setHealth(health workv1alpha1.ResourceHealth) StatusChange {
	return func(s *workv1alpha1.WorkStatus) { s.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health}} }
}

func TestChangesAreCoalesced(t *testing.T) {
	of := newWork()
	s := newWorkStore(t, of)
	w := startWriter(t, s, StatusWriterOptions{Pacing: PacingPolicy{Report: window(20 * time.Millisecond), Progress: time.Minute, MaxDelay: time.Minute, BusyRate: 100}, Workers: 2})
	w.Submit(of, ConditionPart(workv1alpha1.WorkApplied), StatusInProgress, setApplied(metav1.ConditionTrue))
	w.Submit(of, ManifestStatusesPart, StatusInProgress, setHealth(workv1alpha1.ResourceUnhealthy))
	w.Submit(of, ManifestStatusesPart, StatusSettled, setHealth(workv1alpha1.ResourceHealthy))
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

func TestRenamedConditionsAreRemoved(t *testing.T) {
	of := newWork()
	setApplied(metav1.ConditionTrue)(&of.Status)
	want := *of.Status.DeepCopy()
	for _, renamed := range workv1alpha1.RenamedConditions {
		of.Status.Conditions = append(of.Status.Conditions, metav1.Condition{Type: renamed, Status: metav1.ConditionTrue, Reason: "R"})
	}
	s := newWorkStore(t, of)
	w := startWriter(t, s, StatusWriterOptions{Workers: 1})
	w.Submit(of, ManifestStatusesPart, StatusFailed, func(*workv1alpha1.WorkStatus) {})
	s.awaitWrite(t)
	stored := &workv1alpha1.Work{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(of), stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, stored.Status); diff != "" {
		t.Error(diff)
	}
}

func TestImmediateChange(t *testing.T) {
	of := newWork()
	s := newWorkStore(t, of)
	w := startWriter(t, s, StatusWriterOptions{Pacing: PacingPolicy{Report: window(time.Hour), MaxDelay: time.Hour, BusyRate: 100}, Workers: 1})
	w.Submit(of, ConditionPart(workv1alpha1.WorkApplied), StatusFailed, setApplied(metav1.ConditionFalse))
	s.awaitWrite(t)
}

func TestDebounce(t *testing.T) {
	type step struct {
		after time.Duration
		part  StatusPart
		state StatusState
		wait  time.Duration
	}
	cases := map[string][]step{
		"constant changes are written at the limit": {
			{0, ManifestStatusesPart, StatusSettled, time.Second},
			{900 * time.Millisecond, ManifestStatusesPart, StatusSettled, time.Second},
			{900 * time.Millisecond, ManifestStatusesPart, StatusSettled, 200 * time.Millisecond},
			{200 * time.Millisecond, ManifestStatusesPart, StatusSettled, 0},
		},
		"a deferred change waits for the longer debounce": {
			{0, ConditionPart(workv1alpha1.WorkApplied), StatusInProgress, 1500 * time.Millisecond},
			{time.Second, ManifestStatusesPart, StatusInProgress, time.Second},
		},
		"a deferred change is written with a more urgent one": {
			{0, ConditionPart(workv1alpha1.WorkApplied), StatusInProgress, 1500 * time.Millisecond},
			{100 * time.Millisecond, ManifestStatusesPart, StatusSettled, time.Second},
			{100 * time.Millisecond, ConditionPart(workv1alpha1.WorkApplied), StatusFailed, 0},
		},
		"a less urgent change of the same part replaces it": {
			{0, ManifestStatusesPart, StatusSettled, time.Second},
			{100 * time.Millisecond, ManifestStatusesPart, StatusInProgress, 1500 * time.Millisecond},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			of := newWork()
			w := NewStatusWriter(newWorkStore(t, of), nil, StatusWriterOptions{Pacing: PacingPolicy{Report: window(time.Second), Progress: 1500 * time.Millisecond, MaxDelay: 2 * time.Second, BusyRate: 100}, Workers: 1})
			w.now = func() time.Time { return clock }
			for i, s := range steps {
				clock = clock.Add(s.after)
				w.Submit(of, s.part, s.state, setHealth(workv1alpha1.ResourceUnknown))
				if _, wait := w.takePending(client.ObjectKeyFromObject(of)); wait != s.wait {
					t.Errorf("step %d: waits %s, want %s", i, wait, s.wait)
				}
			}
		})
	}
}

func TestDeliveriesDelayStatusWrites(t *testing.T) {
	start := time.Unix(1000, 0)
	of := newWork()
	w := NewStatusWriter(nil, nil, StatusWriterOptions{Pacing: PacingPolicy{BusyRate: 3, MaxDelay: 2 * time.Second, MaxBusyDelay: 5 * time.Second, BusyPollInterval: time.Second}})
	defer w.queue.ShutDown()
	w.now = func() time.Time { return start }
	for i := range 4 {
		of.Name = fmt.Sprint("web-", i)
		w.Submit(of, ConditionPart(workv1alpha1.WorkApplied), StatusSettled, nil)
	}
	if _, wait := w.takePending(client.ObjectKeyFromObject(of)); wait != time.Second {
		t.Errorf("with 4 deliveries in a second the status waits %s, want 1s", wait)
	}
}

func TestWritesOfProgressAreRateLimited(t *testing.T) {
	start := time.Unix(1000, 0)
	key := client.ObjectKeyFromObject(newWork())
	for name, test := range map[string]struct {
		age  time.Duration
		want time.Duration
	}{
		"no token available":       {age: 3 * time.Second, want: time.Second},
		"waited for the maximum":   {age: DefaultPacingPolicy().MaxProgressDelay, want: 0},
		"waits for the first time": {age: 2 * time.Second, want: time.Second},
		"just below the maximum":   {age: DefaultPacingPolicy().MaxProgressDelay - 1, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewStatusWriter(nil, nil, StatusWriterOptions{Pacing: DefaultPacingPolicy()})
			w.now = func() time.Time { return start }
			w.pacer.limiter.AllowN(start, DefaultPacingPolicy().WorkProgressPerSecond)
			w.pending[key] = &pendingUpdate{
				changes: map[StatusPart]partChange{ManifestStatusesPart: {state: StatusInProgress}}, firstAt: start.Add(-test.age), lastAt: start.Add(-test.age),
			}
			if entry, wait := w.takePending(key); wait != test.want || (entry != nil) != (test.want == 0) {
				t.Errorf("take() = %v, %s, want to wait %s", entry, wait, test.want)
			}
		})
	}
}

func TestReadYourWrites(t *testing.T) {
	of := newWork()
	of.ResourceVersion = "7"
	w := NewStatusWriter(nil, nil, DefaultStatusWriterOptions())
	last := of.DeepCopy()
	last.ResourceVersion = "9"
	w.lastWrites.RecordState(client.ObjectKeyFromObject(of), last)
	if got := w.Latest(of); got != last {
		t.Error("a cache that lags behind the last write is used")
	}
	newer := of.DeepCopy()
	newer.ResourceVersion = "10"
	if got := w.Latest(newer); got != newer {
		t.Error("a newer cache is ignored")
	}
}

func TestLastWriteIsKeptUntilCacheSyncs(t *testing.T) {
	for name, gone := range map[string]bool{"cache shows the write": false, "Work is gone": true} {
		t.Run(name, func(t *testing.T) {
			of := newWork()
			key := client.ObjectKeyFromObject(of)
			s := newWorkStore(t, of)
			w := NewStatusWriter(s, s, DefaultStatusWriterOptions())
			w.cacheSyncDelay = 0
			update := &pendingUpdate{uid: "1", changes: map[StatusPart]partChange{ConditionPart(workv1alpha1.WorkApplied): {StatusFailed, setApplied(metav1.ConditionTrue)}}}
			if err := w.writeStatus(t.Context(), key, update); err != nil {
				t.Fatal(err)
			}
			if w.lastWrites.Len() != 1 || w.queue.Len() != 1 {
				t.Fatalf("%d kept, %d queued", w.lastWrites.Len(), w.queue.Len())
			}
			// The cached Work is older than the last write.
			stored := &workv1alpha1.Work{}
			if err := s.Get(t.Context(), key, stored); err != nil {
				t.Fatal(err)
			}
			later := stored.DeepCopy()
			later.ResourceVersion = "1" + stored.ResourceVersion + "0"
			w.lastWrites.RecordState(key, later)
			w.processNext(t.Context())
			if w.lastWrites.Len() != 1 || w.queue.Len() != 1 {
				t.Fatalf("while the cache lags: %d kept, %d queued", w.lastWrites.Len(), w.queue.Len())
			}
			if gone {
				if err := s.Delete(t.Context(), of); err != nil {
					t.Fatal(err)
				}
			} else {
				w.lastWrites.RecordState(key, stored)
			}
			w.processNext(t.Context())
			if w.lastWrites.Len() != 0 || w.queue.Len() != 0 {
				t.Errorf("%d kept, %d queued", w.lastWrites.Len(), w.queue.Len())
			}
		})
	}
}

// After the restore of a backup, a Work is older than the last write of this Work.
func TestLastWriteIsDroppedAfterRestore(t *testing.T) {
	tests := map[string]func(*testing.T, *StatusWriter, *workv1alpha1.Work, *pendingUpdate){
		"by a conflict": func(t *testing.T, w *StatusWriter, of *workv1alpha1.Work, update *pendingUpdate) {
			if err := w.writeStatus(t.Context(), client.ObjectKeyFromObject(of), update); !apierrors.IsConflict(err) {
				t.Fatalf("the write over a lost state: %v", err)
			}
			if err := w.writeStatus(t.Context(), client.ObjectKeyFromObject(of), update); err != nil {
				t.Error(err)
			}
		},
		"after a minute": func(t *testing.T, w *StatusWriter, of *workv1alpha1.Work, _ *pendingUpdate) {
			at := time.Now().Add(time.Minute)
			w.now = func() time.Time { return at }
			if got := w.Latest(of); got != of || w.lastWrites.Len() != 0 {
				t.Error("the stored state is ignored")
			}
		},
	}
	for name, forget := range tests {
		t.Run(name, func(t *testing.T) {
			of := newWork()
			s := newWorkStore(t, of)
			key := client.ObjectKeyFromObject(of)
			if err := s.Get(t.Context(), key, of); err != nil {
				t.Fatal(err)
			}
			lost := of.DeepCopy()
			lost.ResourceVersion += "000"
			w := NewStatusWriter(s, s, DefaultStatusWriterOptions())
			w.lastWrites.RecordState(key, lost)
			forget(t, w, of, &pendingUpdate{uid: "1", changes: map[StatusPart]partChange{ConditionPart(workv1alpha1.WorkApplied): {StatusFailed, setApplied(metav1.ConditionTrue)}}})
		})
	}
}

// outdatedCache is a client whose reads return an outdated Work.
type outdatedCache struct {
	client.Client
	outdated *workv1alpha1.Work
}

func (o outdatedCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o.outdated.DeepCopyInto(into.(*workv1alpha1.Work)) // the writer reads only Works
	return nil
}

// A change that brings back the state of an outdated cache must be written, although the cache
// shows no difference.
func TestChangeBackIsWrittenAfterFailure(t *testing.T) {
	of := newWork()
	setApplied(metav1.ConditionTrue)(&of.Status)
	s := newWorkStore(t, of)
	key := client.ObjectKeyFromObject(of)
	outdated := &workv1alpha1.Work{}
	if err := s.Get(t.Context(), key, outdated); err != nil {
		t.Fatal(err)
	}
	written := outdated.DeepCopy()
	setApplied(metav1.ConditionFalse)(&written.Status)
	if err := s.Status().Update(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	w := NewStatusWriter(outdatedCache{s, outdated}, s, DefaultStatusWriterOptions())
	w.lastWrites.RecordState(key, written)
	// Another client changes the Work, and the cache shows neither of the two changes.
	changed := written.DeepCopy()
	changed.Labels = map[string]string{"by": "another client"}
	if err := s.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	update := &pendingUpdate{uid: "1", changes: map[StatusPart]partChange{ConditionPart(workv1alpha1.WorkApplied): {StatusFailed, setApplied(metav1.ConditionTrue)}}}
	if err := w.writeStatus(t.Context(), key, update); !apierrors.IsConflict(err) {
		t.Fatalf("the write over a newer Work: %v", err)
	}
	if err := w.writeStatus(t.Context(), key, update); err != nil {
		t.Fatal(err)
	}
	stored := &workv1alpha1.Work{}
	if err := s.Get(t.Context(), key, stored); err != nil {
		t.Fatal(err)
	}
	if got := stored.Status.Conditions[0].Status; got != metav1.ConditionTrue {
		t.Errorf("the stored condition is %s", got)
	}
}

func TestChangeOfFormerWorkIsNotWritten(t *testing.T) {
	of := newWork()
	s := newWorkStore(t, of)
	earlier := of.DeepCopy()
	earlier.UID = "0"
	w := NewStatusWriter(s, s, DefaultStatusWriterOptions())
	if err := w.writeStatus(t.Context(), client.ObjectKeyFromObject(of), &pendingUpdate{uid: "0", changes: map[StatusPart]partChange{ConditionPart(workv1alpha1.WorkApplied): {StatusFailed, setApplied(metav1.ConditionTrue)}}}); err != nil {
		t.Fatal(err)
	}
	if s.writes != 0 {
		t.Error("the change was written")
	}
}
