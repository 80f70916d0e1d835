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
	// budget bounds the reports that are written only because their time is up.
	budget  *rate.Limiter
	karmada client.Client
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	now     func() time.Time
	catchUp time.Duration

	mu         sync.Mutex
	deliveries deliveries
	pending    map[types.NamespacedName]*pending
	// written are Works as our last write left them, until the cache shows that
	// write, for a minute at most: a difference computed from something older would be
	// wrong.
	written map[types.NamespacedName]written
}

// written is a Work as our write left it.
type written struct {
	work *workv1alpha1.Work
	at   time.Time
}

// pending is what was handed in and not written yet.
type pending struct {
	uid         types.UID
	statements  map[Part]statement
	first, last time.Time
}

type statement struct {
	pace   Pace
	change Change
}

// pace is that of the part that hurries most.
func (p *pending) pace() Pace {
	pace := Later
	for _, said := range p.statements {
		pace = max(pace, said.pace)
	}
	return pace
}

// progressPerSecond is how many reports on what is still under way are written in
// a second, all together. How far objects are is worth a write as long as there
// are few; when thousands are rolled out at once only where they arrive is.
const progressPerSecond = 5

// longest is how long a report waits at most, budget or not: those that wait take
// tokens from each other, and one may have bad luck for long.
const longest = 30 * time.Second

// remembered is how long our last write of a Work is held against a cache that does not
// show it.
const remembered = time.Minute

// busyPoll is how often a report that waits for deliveries looks whether they are
// over.
const busyPoll = time.Second

// catchUp is how long the cache gets to show what was written. Until then a copy of the
// Work is held.
const catchUp = 5 * time.Second

const (
	retryBase = 50 * time.Millisecond
	retryMax  = 10 * time.Second
)

// NewWorks makes a writer that reads and writes by a cached client.
func NewWorks(karmada client.Client, o Options) *Works {
	return &Works{
		options: o, karmada: karmada, now: time.Now, catchUp: catchUp,
		budget: rate.NewLimiter(progressPerSecond, progressPerSecond),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBase, retryMax)),
		pending: map[types.NamespacedName]*pending{},
		written: map[types.NamespacedName]written{},
	}
}

// Start writes reports until ctx ends.
func (w *Works) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for range w.options.Workers {
		workers.Go(func() {
			for w.next(ctx) {
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
	return w.current(cached)
}

func (w *Works) current(cached *workv1alpha1.Work) *workv1alpha1.Work {
	key := client.ObjectKeyFromObject(cached)
	ours, ok := w.written[key]
	if !ok {
		return cached
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, ours.work.ResourceVersion)
	if err == nil && order < 0 && cached.UID == ours.work.UID && w.now().Sub(ours.at) < remembered {
		return ours.work
	}
	delete(w.written, key)
	return cached
}

// Report hands in a part of the status of a Work.
func (w *Works) Report(of *workv1alpha1.Work, part Part, pace Pace, change Change) {
	key := client.ObjectKeyFromObject(of)
	w.mu.Lock()
	entry, ok := w.pending[key]
	if !ok || entry.uid != of.UID {
		entry = &pending{uid: of.UID, statements: map[Part]statement{}, first: w.now()}
		w.pending[key] = entry
	}
	entry.statements[part] = statement{pace: pace, change: change}
	entry.last = w.now()
	if part == Condition(workv1alpha1.WorkApplied) {
		w.deliveries.note(entry.last)
	}
	wait := w.wait(entry)
	w.mu.Unlock()
	w.queue.AddAfter(key, wait)
}

// wait is how long what is pending should still wait.
func (w *Works) wait(entry *pending) time.Duration {
	held := entry.first.Add(w.options.BusyLimit).Sub(w.now())
	if entry.pace() != Now && held > 0 && w.deliveries.perSecond(w.now()) > w.options.Busy {
		return min(held, busyPoll)
	}
	due := entry.first.Add(w.options.Limit)
	quiet := w.options.Calm
	switch entry.pace() {
	case Now:
		return 0
	case Soon:
		quiet = w.options.Quiet
	case Later:
	}
	if calm := entry.last.Add(quiet); calm.Before(due) {
		due = calm
	}
	return due.Sub(w.now())
}

func (w *Works) next(ctx context.Context) bool {
	key, shutdown := w.queue.Get()
	if shutdown {
		return false
	}
	defer w.queue.Done(key)
	entry, wait := w.take(key)
	switch {
	case wait > 0:
		w.queue.AddAfter(key, wait)
		return true
	case entry == nil:
		w.settle(ctx, key)
		return true
	}
	if err := w.write(ctx, key, entry); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Report will be written again", "work", key, "cause", err)
		w.giveBack(key, entry)
		w.queue.AddRateLimited(key)
		return true
	}
	w.queue.Forget(key)
	return true
}

// take removes what is pending for a Work, or tells how long it must still wait.
func (w *Works) take(key types.NamespacedName) (*pending, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry, ok := w.pending[key]
	if !ok {
		return nil, 0
	}
	if wait := w.wait(entry); wait > 0 {
		return nil, wait
	}
	if entry.pace() == Later && w.now().Sub(entry.first) < longest && !w.budget.AllowN(w.now(), 1) {
		return nil, w.options.Limit
	}
	delete(w.pending, key)
	return entry, 0
}

// giveBack keeps what could not be written, unless something newer was handed in.
func (w *Works) giveBack(key types.NamespacedName, entry *pending) {
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
	for part, said := range entry.statements {
		if _, replaced := newer.statements[part]; !replaced {
			newer.statements[part] = said
		}
	}
	newer.first = entry.first
}

func (w *Works) write(ctx context.Context, key types.NamespacedName, entry *pending) error {
	cached := &workv1alpha1.Work{}
	if err := w.karmada.Get(ctx, key, cached); err != nil {
		return client.IgnoreNotFound(err)
	}
	if cached.UID != entry.uid {
		return nil
	}
	before := w.Current(cached)
	after := before.DeepCopy()
	for _, part := range slices.Sorted(maps.Keys(entry.statements)) {
		entry.statements[part].change(&after.Status)
	}
	changed, err := patch.Status(ctx, w.karmada, before, after)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if apierrors.IsConflict(err) {
			// What is remembered may be no state of the Work any more, as after the
			// restore of a backup.
			w.unlearn(key)
		}
		return fmt.Errorf("reporting on Work %s: %w", key, err)
	}
	if changed {
		w.mu.Lock()
		w.written[key] = written{work: after, at: w.now()}
		w.mu.Unlock()
		w.queue.AddAfter(key, w.catchUp)
	}
	return nil
}

// unlearn drops our last write of a Work.
func (w *Works) unlearn(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, key)
}

// settle lets go of our last write when the cache shows it, or the Work is gone.
func (w *Works) settle(ctx context.Context, key types.NamespacedName) {
	w.mu.Lock()
	_, held := w.written[key]
	w.mu.Unlock()
	if !held {
		return
	}
	cached := &workv1alpha1.Work{}
	err := w.karmada.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		w.unlearn(key)
	case err != nil || w.Current(cached) != cached:
		w.queue.AddAfter(key, w.catchUp)
	}
}

// Forget drops what is remembered of a Work that is gone.
func (w *Works) Forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
	delete(w.written, key)
}
