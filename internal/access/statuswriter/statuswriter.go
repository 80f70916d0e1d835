// Package statuswriter answers: how do several controllers change the status of one Work with a
// single write? They submit their changes, and soon after the last change all of them are
// written at once.
//
// Every watcher pays for a write of a status, so it is worth a short debounce: events in a
// member come in bursts. Failures are written without a delay. The changes are derived from
// stored objects and from members, so nothing is lost if the process ends before it writes
// them.
package statuswriter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
)

// Options limit how long a change waits.
type Options struct {
	// PromptDebounce is the debounce for a change with the pace Soon.
	PromptDebounce time.Duration
	// DeferredDebounce is the debounce for a change with the pace Later.
	DeferredDebounce time.Duration
	// MaxDelay is the maximum delay while new changes keep arriving, and the interval in which a
	// change with the pace Later retries the rate limit.
	MaxDelay time.Duration
	// BusyDeliveriesPerSecond is the number of deliveries per second above which all changes except those with
	// the pace Now wait, for at most MaxBusyDelay. Deliveries that users requested have
	// precedence over their statuses, which change again during the deliveries anyway.
	BusyDeliveriesPerSecond int
	MaxBusyDelay            time.Duration
	// Workers is the number of Works that are written at once.
	Workers int
}

// DefaultOptions give a short delay for one object and few writes for many objects.
func DefaultOptions() Options {
	return Options{PromptDebounce: 80 * time.Millisecond, DeferredDebounce: 250 * time.Millisecond, MaxDelay: 2 * time.Second, BusyDeliveriesPerSecond: 20, MaxBusyDelay: 5 * time.Second, Workers: 8}
}

// Part is one part of the status of a Work with one author. A later change of a part replaces
// an earlier one.
type Part string

// ManifestStatusesPart is the part that the status controller writes.
const ManifestStatusesPart Part = "manifestStatuses"

// ConditionPart returns the part with the condition of one type, which the execution controller
// writes. A change of one type does not affect other types.
func ConditionPart(kind string) Part { return Part("conditions/" + kind) }

// Urgency is the urgency of a change.
type Urgency int

const (
	// Deferred is for a state that is about to change again: it waits for the longer debounce and
	// the rate limit, or is written together with a more urgent change.
	Deferred Urgency = iota
	// Prompt is for a stable state: it waits for the shorter debounce.
	Prompt
	// Immediate is for failures: it does not wait.
	Immediate
)

// Change sets its part of a status.
type Change func(status *workv1alpha1.WorkStatus)

// Writer writes the statuses of Works.
type Writer struct {
	options Options
	// deferredLimiter limits the writes of changes with the pace Later.
	deferredLimiter *rate.Limiter
	karmada         client.Client
	queue           workqueue.TypedRateLimitingInterface[types.NamespacedName]
	now             func() time.Time
	cacheSyncDelay  time.Duration

	mu         sync.Mutex
	deliveries deliveryRate
	pending    map[types.NamespacedName]*pendingUpdate
	// lastWrites are Works as this process wrote them last, until the cache shows that write,
	// for at most a minute. A difference that is computed from an older state would be wrong.
	lastWrites map[types.NamespacedName]lastWrite
}

// lastWrite is a Work as this process wrote it.
type lastWrite struct {
	work *workv1alpha1.Work
	at   time.Time
}

// pendingUpdate are the changes of one Work that are not written yet.
type pendingUpdate struct {
	uid             types.UID
	changes         map[Part]partChange
	firstAt, lastAt time.Time
}

type partChange struct {
	urgency Urgency
	change  Change
}

// urgency returns that of the most urgent change.
func (p *pendingUpdate) urgency() Urgency {
	pace := Deferred
	for _, change := range p.changes {
		pace = max(pace, change.urgency)
	}
	return pace
}

// deferredWritesPerSecond limits the writes of intermediate states for all Works together. The
// progress of single objects is worth a write. If thousands are rolled out at once, only their
// final states are.
const deferredWritesPerSecond = 5

// maxDeferredDelay is how long a change waits at most for the rate limit. The waiting changes
// compete for its tokens, so a single one could wait much longer.
const maxDeferredDelay = 30 * time.Second

// maxLastWriteAge is how long the last write of a Work is preferred to a cache that does not
// show it.
const maxLastWriteAge = time.Minute

// busyPollInterval is how often a change that waits for deliveries is checked again.
const busyPollInterval = time.Second

// cacheSyncDelay is the time that the cache gets to show a write. Until then a copy of the
// Work is kept.
const cacheSyncDelay = 5 * time.Second

const (
	retryBase = 50 * time.Millisecond
	retryMax  = 10 * time.Second
)

// NewWriter returns a writer that reads and writes with a cached client.
func NewWriter(karmada client.Client, o Options) *Writer {
	return &Writer{
		options: o, karmada: karmada, now: time.Now, cacheSyncDelay: cacheSyncDelay,
		deferredLimiter: rate.NewLimiter(deferredWritesPerSecond, deferredWritesPerSecond),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBase, retryMax)),
		pending:    map[types.NamespacedName]*pendingUpdate{},
		lastWrites: map[types.NamespacedName]lastWrite{},
	}
}

// Start writes changes until ctx ends.
func (w *Writer) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range w.options.Workers {
		workers.Go(func() {
			for w.processNext(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	workers.Wait()
	return nil
}

// Latest returns the newest known state of the Work: as cached, or as last written if the
// cache does not show that write yet. It must not be changed.
func (w *Writer) Latest(cached *workv1alpha1.Work) *workv1alpha1.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latestLocked(cached)
}

func (w *Writer) latestLocked(cached *workv1alpha1.Work) *workv1alpha1.Work {
	key := client.ObjectKeyFromObject(cached)
	last, ok := w.lastWrites[key]
	if !ok {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, last.work.ResourceVersion)
	if err == nil && order < 0 && cached.UID == last.work.UID && w.now().Sub(last.at) < maxLastWriteAge {
		return last.work
	}
	delete(w.lastWrites, key)
	return cached
}

// Submit submits a change of one part of the status of a Work.
func (w *Writer) Submit(of *workv1alpha1.Work, part Part, pace Urgency, change Change) {
	key := client.ObjectKeyFromObject(of)
	w.mu.Lock()
	entry, ok := w.pending[key]
	if !ok || entry.uid != of.UID {
		entry = &pendingUpdate{uid: of.UID, changes: map[Part]partChange{}, firstAt: w.now()}
		w.pending[key] = entry
	}
	entry.changes[part] = partChange{urgency: pace, change: change}
	entry.lastAt = w.now()
	if part == ConditionPart(workv1alpha1.WorkApplied) {
		w.deliveries.record(entry.lastAt)
	}
	wait := w.remainingDelay(entry)
	w.mu.Unlock()
	w.queue.AddAfter(key, wait)
}

// remainingDelay returns how long the pending changes of a Work must still wait.
func (w *Writer) remainingDelay(entry *pendingUpdate) time.Duration {
	held := entry.firstAt.Add(w.options.MaxBusyDelay).Sub(w.now())
	if entry.urgency() != Immediate && held > 0 && w.deliveries.perSecond(w.now()) > w.options.BusyDeliveriesPerSecond {
		return min(held, busyPollInterval)
	}
	due := entry.firstAt.Add(w.options.MaxDelay)
	quiet := w.options.DeferredDebounce
	switch entry.urgency() {
	case Immediate:
		return 0
	case Prompt:
		quiet = w.options.PromptDebounce
	case Deferred:
	}
	if calm := entry.lastAt.Add(quiet); calm.Before(due) {
		due = calm
	}
	return due.Sub(w.now())
}

func (w *Writer) processNext(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	entry, wait := w.takePending(key)
	switch {
	case wait > 0:
		w.queue.AddAfter(key, wait)
		return true
	case entry == nil:
		w.dropSyncedWrite(ctx, key)
		return true
	}
	if err := w.write(ctx, key, entry); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Status will be written again", "work", key, "cause", err)
		w.putBack(key, entry)
		w.queue.AddRateLimited(key)
		return true
	}
	w.queue.Forget(key)
	return true
}

// takePending removes the pending changes of a Work, or returns how long they must still wait.
func (w *Writer) takePending(key types.NamespacedName) (*pendingUpdate, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry, ok := w.pending[key]
	if !ok {
		return nil, 0
	}
	if wait := w.remainingDelay(entry); wait > 0 {
		return nil, wait
	}
	if entry.urgency() == Deferred && w.now().Sub(entry.firstAt) < maxDeferredDelay && !w.deferredLimiter.AllowN(w.now(), 1) {
		return nil, w.options.MaxDelay
	}
	delete(w.pending, key)
	return entry, 0
}

// putBack keeps changes that could not be written, except parts for which a newer change was
// submitted.
func (w *Writer) putBack(key types.NamespacedName, entry *pendingUpdate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	newer, ok := w.pending[key]
	if !ok {
		w.pending[key] = entry
		return
	}
	if newer.uid != entry.uid {
		return
	}
	for part, change := range entry.changes {
		if _, replaced := newer.changes[part]; !replaced {
			newer.changes[part] = change
		}
	}
	newer.firstAt = entry.firstAt
}

func (w *Writer) write(ctx context.Context, key types.NamespacedName, entry *pendingUpdate) error {
	cached := &workv1alpha1.Work{}
	if err := w.karmada.Get(ctx, key, cached); err != nil {
		return client.IgnoreNotFound(err)
	}
	if cached.UID != entry.uid {
		return nil
	}
	before := w.Latest(cached)
	after := before.DeepCopy()
	for _, part := range slices.Sorted(maps.Keys(entry.changes)) {
		entry.changes[part].change(&after.Status)
	}
	changed, err := patch.Status(ctx, w.karmada, before, after)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if apierrors.IsConflict(err) {
			// After the restore of a backup the last write is not a state of the Work any more.
			w.deleteLastWrite(key)
		}
		return fmt.Errorf("writing the status of Work %s: %w", key, err)
	}
	if changed {
		w.mu.Lock()
		w.lastWrites[key] = lastWrite{work: after, at: w.now()}
		w.mu.Unlock()
		w.queue.AddAfter(key, w.cacheSyncDelay)
	}
	return nil
}

// deleteLastWrite drops the last write of a Work.
func (w *Writer) deleteLastWrite(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.lastWrites, key)
}

// dropSyncedWrite drops the last write of a Work when the cache shows it or the Work is gone.
func (w *Writer) dropSyncedWrite(ctx context.Context, key types.NamespacedName) {
	w.mu.Lock()
	_, held := w.lastWrites[key]
	w.mu.Unlock()
	if !held {
		return
	}
	cached := &workv1alpha1.Work{}
	err := w.karmada.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		w.deleteLastWrite(key)
	case err != nil || w.Latest(cached) != cached:
		w.queue.AddAfter(key, w.cacheSyncDelay)
	}
}

// Delete drops the state that is kept for a deleted Work.
func (w *Writer) Delete(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
	delete(w.lastWrites, key)
}
