// Package report answers "how do several controllers report on one Work at the
// cost of one write?": they hand in what they have to say, and a moment after the
// last of them has spoken it is written at once.
//
// Every write of a status is paid for by all who watch it, so it is worth a
// moment of patience: what happens in a member comes in bursts. Whoever has bad
// news does not wait. What is handed in is derived from what is stored in the
// control plane and in members, so losing it with the process loses nothing.
package report

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

// Options bound how long a report waits.
type Options struct {
	// Quiet is how long nothing new must have been handed in before a report that
	// may be written Soon is.
	Quiet time.Duration
	// Calm is the same for a report that may be written Later.
	Calm time.Duration
	// Limit is how long a report waits at most while there is always something
	// new, and how long one that may be written Later waits for the budget.
	Limit time.Duration
	// Busy is how many deliveries in a second make all but bad news wait, for
	// BusyLimit at most: what users asked for goes before what is told about it,
	// and while it goes more will be known to tell.
	Busy      int
	BusyLimit time.Duration
	// Workers is how many Works are written at once.
	Workers int
}

// DefaultOptions keep the way of a status short for one object and cheap for many.
func DefaultOptions() Options {
	return Options{Quiet: 80 * time.Millisecond, Calm: 250 * time.Millisecond, Limit: 2 * time.Second, Busy: 20, BusyLimit: 5 * time.Second, Workers: 8}
}

// Part is one part of a Work's status with one author: what a later report of the
// same part says replaces what an earlier one said.
type Part string

// ManifestStatuses are written by status reflection.
const ManifestStatuses Part = "manifestStatuses"

// Condition is the condition of one type, written by execution. What is said of
// one type leaves what was said of another as it is.
func Condition(kind string) Part { return Part("conditions/" + kind) }

// Pace is how much a part hurries.
type Pace int

const (
	// Later is for what is about to change by itself: it waits until it is calm and
	// the budget allows, or goes along with what hurries more.
	Later Pace = iota
	// Soon is for what has arrived where it was going: it waits until it is quiet.
	Soon
	// Now is for bad news.
	Now
)

// Change brings its part of a status up to date.
type Change func(status *workv1alpha1.WorkStatus)

// Works writes the reports on Works.
type Works struct {
	options Options
	// deferredLimiter bounds the reports that are written only because their time is up.
	deferredLimiter  *rate.Limiter
	karmada client.Client
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	now     func() time.Time
	cacheSyncDelay time.Duration

	mu         sync.Mutex
	deliveries deliveryRate
	pending    map[types.NamespacedName]*pendingUpdate
	// lastWrites are Works as our last write left them, until the cache shows that
	// write, for a minute at most: a difference computed from something older would be
	// wrong.
	lastWrites map[types.NamespacedName]lastWrite
}

// lastWrite is a Work as our write left it.
type lastWrite struct {
	work *workv1alpha1.Work
	at   time.Time
}

// pendingUpdate is what was handed in and not written yet.
type pendingUpdate struct {
	uid         types.UID
	changes  map[Part]partChange
	firstAt, lastAt time.Time
}

type partChange struct {
	urgency   Pace
	change Change
}

// urgency is that of the part that hurries most.
func (p *pendingUpdate) urgency() Pace {
	pace := Later
	for _, said := range p.changes {
		pace = max(pace, said.urgency)
	}
	return pace
}

// deferredWritesPerSecond is how many reports on what is still under way are written in
// a second, all together. How far objects are is worth a write as long as there
// are few; when thousands are rolled out at once only where they arrive is.
const deferredWritesPerSecond = 5

// maxDeferredDelay is how long a report waits at most, budget or not: those that wait take
// tokens from each other, and one may have bad luck for long.
const maxDeferredDelay = 30 * time.Second

// maxLastWriteAge is how long our last write of a Work is held against a cache that does not
// show it.
const maxLastWriteAge = time.Minute

// busyPollInterval is how often a report that waits for deliveries looks whether they are
// over.
const busyPollInterval = time.Second

// cacheSyncDelay is how long the cache gets to show what was written. Until then a copy of the
// Work is held.
const cacheSyncDelay = 5 * time.Second

const (
	retryBase = 50 * time.Millisecond
	retryMax  = 10 * time.Second
)

// NewWorks makes a writer that reads and writes by a cached client.
func NewWorks(karmada client.Client, o Options) *Works {
	return &Works{
		options: o, karmada: karmada, now: time.Now, cacheSyncDelay: cacheSyncDelay,
		deferredLimiter: rate.NewLimiter(deferredWritesPerSecond, deferredWritesPerSecond),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBase, retryMax)),
		pending: map[types.NamespacedName]*pendingUpdate{},
		lastWrites: map[types.NamespacedName]lastWrite{},
	}
}

// Start writes reports until ctx ends.
func (w *Works) Start(ctx context.Context) error {
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

// Current is the Work as it is known to be: as cached, or as our last write left
// it if the cache does not show that yet. It must not be changed.
func (w *Works) Current(cached *workv1alpha1.Work) *workv1alpha1.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latestLocked(cached)
}

func (w *Works) latestLocked(cached *workv1alpha1.Work) *workv1alpha1.Work {
	key := client.ObjectKeyFromObject(cached)
	ours, ok := w.lastWrites[key]
	if !ok {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, ours.work.ResourceVersion)
	if err == nil && order < 0 && cached.UID == ours.work.UID && w.now().Sub(ours.at) < maxLastWriteAge {
		return ours.work
	}
	delete(w.lastWrites, key)
	return cached
}

// Report hands in a part of the status of a Work.
func (w *Works) Report(of *workv1alpha1.Work, part Part, pace Pace, change Change) {
	key := client.ObjectKeyFromObject(of)
	w.mu.Lock()
	entry, ok := w.pending[key]
	if !ok || entry.uid != of.UID {
		entry = &pendingUpdate{uid: of.UID, changes: map[Part]partChange{}, firstAt: w.now()}
		w.pending[key] = entry
	}
	entry.changes[part] = partChange{urgency: pace, change: change}
	entry.lastAt = w.now()
	if part == Condition(workv1alpha1.WorkApplied) {
		w.deliveries.record(entry.lastAt)
	}
	wait := w.remainingDelay(entry)
	w.mu.Unlock()
	w.queue.AddAfter(key, wait)
}

// remainingDelay is how long what is pending should still wait.
func (w *Works) remainingDelay(entry *pendingUpdate) time.Duration {
	held := entry.firstAt.Add(w.options.BusyLimit).Sub(w.now())
	if entry.urgency() != Now && held > 0 && w.deliveries.perSecond(w.now()) > w.options.Busy {
		return min(held, busyPollInterval)
	}
	due := entry.firstAt.Add(w.options.Limit)
	quiet := w.options.Calm
	switch entry.urgency() {
	case Now:
		return 0
	case Soon:
		quiet = w.options.Quiet
	case Later:
	}
	if calm := entry.lastAt.Add(quiet); calm.Before(due) {
		due = calm
	}
	return due.Sub(w.now())
}

func (w *Works) processNext(ctx context.Context) bool {
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
		klog.FromContext(ctx).V(2).Info("Report will be written again", "work", key, "cause", err)
		w.putBack(key, entry)
		w.queue.AddRateLimited(key)
		return true
	}
	w.queue.Forget(key)
	return true
}

// takePending removes what is pending for a Work, or tells how long it must still wait.
func (w *Works) takePending(key types.NamespacedName) (*pendingUpdate, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry, ok := w.pending[key]
	if !ok {
		return nil, 0
	}
	if wait := w.remainingDelay(entry); wait > 0 {
		return nil, wait
	}
	if entry.urgency() == Later && w.now().Sub(entry.firstAt) < maxDeferredDelay && !w.deferredLimiter.AllowN(w.now(), 1) {
		return nil, w.options.Limit
	}
	delete(w.pending, key)
	return entry, 0
}

// putBack keeps what could not be written, unless something newer was handed in.
func (w *Works) putBack(key types.NamespacedName, entry *pendingUpdate) {
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
	for part, said := range entry.changes {
		if _, replaced := newer.changes[part]; !replaced {
			newer.changes[part] = said
		}
	}
	newer.firstAt = entry.firstAt
}

func (w *Works) write(ctx context.Context, key types.NamespacedName, entry *pendingUpdate) error {
	cached := &workv1alpha1.Work{}
	if err := w.karmada.Get(ctx, key, cached); err != nil {
		return client.IgnoreNotFound(err)
	}
	if cached.UID != entry.uid {
		return nil
	}
	before := w.Current(cached)
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
			// What is remembered may be no state of the Work any more, as after the
			// restore of a backup.
			w.deleteLastWrite(key)
		}
		return fmt.Errorf("reporting on Work %s: %w", key, err)
	}
	if changed {
		w.mu.Lock()
		w.lastWrites[key] = lastWrite{work: after, at: w.now()}
		w.mu.Unlock()
		w.queue.AddAfter(key, w.cacheSyncDelay)
	}
	return nil
}

// deleteLastWrite drops our last write of a Work.
func (w *Works) deleteLastWrite(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.lastWrites, key)
}

// dropSyncedWrite lets go of our last write when the cache shows it, or the Work is gone.
func (w *Works) dropSyncedWrite(ctx context.Context, key types.NamespacedName) {
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
	case err != nil || w.Current(cached) != cached:
		w.queue.AddAfter(key, w.cacheSyncDelay)
	}
}

// Forget drops what is remembered of a Work that is gone.
func (w *Works) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
	delete(w.lastWrites, key)
}
