package loop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop/patch"
)

// StatusWriterOptions configure a writer.
type StatusWriterOptions struct {
	// Pacing decides how long a change waits.
	Pacing PacingPolicy
	// Workers is the number of Works that are written concurrently.
	Workers int
}

// DefaultStatusWriterOptions returns options that give a short delay for one object and few writes
// for many objects.
func DefaultStatusWriterOptions() StatusWriterOptions {
	return StatusWriterOptions{Pacing: DefaultPacingPolicy(), Workers: 8}
}

// StatusPart identifies a part of the status of a Work. Only one controller writes each part. A
// later change of a part replaces an earlier change of that part.
type StatusPart string

// ManifestStatusesPart is the part that the status controller writes.
const ManifestStatusesPart StatusPart = "manifestStatuses"

// ConditionPart returns the part that contains the condition of one type. The execution controller
// writes these conditions. A change of one condition does not affect the other conditions.
func ConditionPart(kind string) StatusPart { return StatusPart("conditions/" + kind) }

// StatusChange is a function that sets one part of a status.
type StatusChange func(status *workv1alpha1.WorkStatus)

// StatusWriter writes the statuses of Works.
type StatusWriter struct {
	options StatusWriterOptions
	// pacer counts the deliveries, and limits how often all Works together may write a state that
	// is still in progress.
	pacer   *Pacer[types.NamespacedName]
	karmada client.Client
	// live reads Works from the API server.
	live           client.Reader
	queue          workqueue.TypedRateLimitingInterface[types.NamespacedName]
	now            func() time.Time
	cacheSyncDelay time.Duration

	mu      sync.Mutex
	pending map[types.NamespacedName]*pendingUpdate
	// lastWrites are the Works in the state that this process wrote last. A write must not be
	// computed from the cache as long as the cache shows an older state.
	lastWrites *Writes[types.NamespacedName]
}

// pendingUpdate holds the changes of one Work that are not written yet.
type pendingUpdate struct {
	uid             types.UID
	changes         map[StatusPart]partChange
	firstAt, lastAt time.Time
	// hasFailed is true after a failed write. The API server may have stored this write, or may
	// have a newer state than the cache.
	hasFailed bool
}

type partChange struct {
	state  StatusState
	change StatusChange
}

// pacing returns the state and times that decide how long the changes wait. The most urgent change
// decides for all changes of the Work.
func (p *pendingUpdate) pacing() PendingStatus {
	state := StatusInProgress
	for _, change := range p.changes {
		state = max(state, change.state)
	}
	return PendingStatus{State: state, FirstAt: p.firstAt, LastAt: p.lastAt}
}

// cacheSyncDelay is how long the writer waits for the cache to show a write. Until then the writer
// keeps a copy of the Work.
const cacheSyncDelay = 5 * time.Second

const (
	retryBase = 50 * time.Millisecond
	retryMax  = 10 * time.Second
)

// NewStatusWriter returns a writer that reads and writes with a cached client. After a failed
// write, it reads the Work from live, the API server.
func NewStatusWriter(karmada client.Client, live client.Reader, o StatusWriterOptions) *StatusWriter {
	w := &StatusWriter{
		options: o, karmada: karmada, live: live, now: time.Now, cacheSyncDelay: cacheSyncDelay,
		pacer: NewPacer[types.NamespacedName](o.Pacing, o.Pacing.WorkProgressPerSecond),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBase, retryMax)),
		pending: map[types.NamespacedName]*pendingUpdate{},
	}
	w.lastWrites = NewWrites[types.NamespacedName](func() time.Time { return w.now() })
	return w
}

// Start writes changes until ctx ends.
func (w *StatusWriter) Start(ctx context.Context) error {
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

// Latest returns the newest observed state of the Work: the last written state if the cache does
// not show that write yet, else the cached state. The result must not be modified.
func (w *StatusWriter) Latest(cached *workv1alpha1.Work) *workv1alpha1.Work {
	return Latest(w.lastWrites, client.ObjectKeyFromObject(cached), cached)
}

// Submit submits a change of one part of the status of a Work, and the pacing state of that change.
func (w *StatusWriter) Submit(of *workv1alpha1.Work, part StatusPart, state StatusState, change StatusChange) {
	key := client.ObjectKeyFromObject(of)
	w.mu.Lock()
	entry, ok := w.pending[key]
	if !ok || entry.uid != of.UID {
		entry = &pendingUpdate{uid: of.UID, changes: map[StatusPart]partChange{}, firstAt: w.now()}
		w.pending[key] = entry
	}
	entry.changes[part] = partChange{state: state, change: change}
	entry.lastAt = w.now()
	if part == ConditionPart(workv1alpha1.WorkApplied) {
		w.pacer.RecordLoad(entry.lastAt)
	}
	wait := w.remainingDelay(entry)
	w.mu.Unlock()
	w.queue.AddAfter(key, wait)
}

// remainingDelay returns how much longer the pending changes of a Work must wait.
func (w *StatusWriter) remainingDelay(entry *pendingUpdate) time.Duration {
	return w.options.Pacing.WorkDelay(entry.pacing(), w.pacer.Load(w.now()), w.now())
}

func (w *StatusWriter) processNext(ctx context.Context) bool {
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
	if err := w.writeStatus(ctx, key, entry); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Status will be written again", "work", key, "cause", err)
		w.putBack(key, entry)
		w.queue.AddRateLimited(key)
		return true
	}
	w.queue.Forget(key)
	return true
}

// takePending removes and returns the pending changes of a Work, or returns how much longer these
// changes must wait.
func (w *StatusWriter) takePending(key types.NamespacedName) (*pendingUpdate, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry, ok := w.pending[key]
	if !ok {
		return nil, 0
	}
	if wait := w.remainingDelay(entry); wait > 0 {
		return nil, wait
	}
	if entry.pacing().State == StatusInProgress {
		if wait := w.pacer.TurnDelay(key, entry.firstAt, 0, w.now()); wait > 0 {
			return nil, wait
		}
	}
	w.pacer.EndWait(key)
	delete(w.pending, key)
	return entry, 0
}

// putBack stores changes that could not be written, except for parts for which a newer change was
// submitted meanwhile.
func (w *StatusWriter) putBack(key types.NamespacedName, entry *pendingUpdate) {
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
	newer.hasFailed = true
	for part, change := range entry.changes {
		if _, replaced := newer.changes[part]; !replaced {
			newer.changes[part] = change
		}
	}
	newer.firstAt = entry.firstAt
}

func (w *StatusWriter) writeStatus(ctx context.Context, key types.NamespacedName, entry *pendingUpdate) error {
	before, err := w.readWork(ctx, key, entry)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if before.UID != entry.uid {
		return nil
	}
	after := before.DeepCopy()
	for _, part := range slices.Sorted(maps.Keys(entry.changes)) {
		entry.changes[part].change(&after.Status)
	}
	for _, renamed := range workv1alpha1.RenamedConditions {
		conditions.Remove(&after.Status.Conditions, renamed)
	}
	changed, err := patch.Status(ctx, w.karmada, before, after)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		entry.hasFailed = true
		return fmt.Errorf("writing the status of Work %s: %w", key, err)
	}
	if changed {
		w.lastWrites.RecordState(key, after)
		w.queue.AddAfter(key, w.cacheSyncDelay)
	}
	return nil
}

// readWork returns the state of a Work to which the changes are applied. After a failed write, it
// reads from the API server: if a change brings back the state that an outdated cache still shows,
// the comparison with the cache would find no difference, and the change would be lost.
func (w *StatusWriter) readWork(ctx context.Context, key types.NamespacedName, entry *pendingUpdate) (*workv1alpha1.Work, error) {
	stored := &workv1alpha1.Work{}
	if !entry.hasFailed {
		if err := w.karmada.Get(ctx, key, stored); err != nil {
			return nil, err
		}
		if stored.UID != entry.uid {
			return stored, nil
		}
		return w.Latest(stored), nil
	}
	if err := w.live.Get(ctx, key, stored); err != nil {
		return nil, err
	}
	w.lastWrites.RecordState(key, stored)
	w.queue.AddAfter(key, w.cacheSyncDelay)
	return stored, nil
}

// dropSyncedWrite drops the last write of a Work if the cache shows that write or the Work is
// deleted.
func (w *StatusWriter) dropSyncedWrite(ctx context.Context, key types.NamespacedName) {
	cached := &workv1alpha1.Work{}
	err := w.karmada.Get(ctx, key, cached, client.UnsafeDisableDeepCopy)
	switch {
	case apierrors.IsNotFound(err):
		w.lastWrites.Forget(key)
	case err != nil || w.lastWrites.IsStale(key, cached):
		w.queue.AddAfter(key, w.cacheSyncDelay)
	}
}

// Delete removes the stored state of a deleted Work.
func (w *StatusWriter) Delete(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
	w.pacer.EndWait(key)
	w.lastWrites.Forget(key)
}
